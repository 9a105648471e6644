package repair

import (
	"github.com/rebound-llm/rebound/recovery"
	"slices"
	"strings"
)

// jsonCalls reads calls as JSON: one object, several, or an array of them.
func (c *cursor) jsonCalls() (calls []textCall, ok bool) {
	for c.i < len(c.in) && (c.in[c.i] == '{' || c.in[c.i] == '[') {
		v, rules, n, err := readPrefix(c.rest())
		c.reached(c.i + n)
		if err != nil {
			return nil, false
		}
		c.i += n
		list := []*value{v}
		if v.kind == kindArray {
			list = v.items
		}
		for _, item := range list {
			l, ok := callFromObject(item)
			if !ok {
				return nil, false
			}
			l.uncertain = len(rules) > 0
			calls = append(calls, l)
		}
		if c.skipSpace(); c.accept(";") { // Llama separates calls with ";"
			c.skipSpace()
		}
	}
	return calls, len(calls) > 0
}

// unbalanced reads an object whose last brackets are missing, or that has one too many.
// The closing tag behind it proves that nothing else is missing.
func (c *cursor) unbalanced() ([]textCall, bool) {
	text, _, ok := strings.Cut(c.rest(), "</")
	if !ok {
		return nil, false
	}
	v, _, err := readTolerant(text, true)
	if err != nil {
		return nil, false
	}
	l, ok := callFromObject(v)
	l.uncertain = true
	c.i += len(text)
	return []textCall{l}, ok
}

// callFromObject reads a call from {"name": …, "arguments": …} and its variants, or from
// {"f": {…}}, which Apertus writes.
func callFromObject(v *value) (l textCall, ok bool) {
	if v.kind != kindObject || len(v.members) > 5 {
		return l, false
	}
	for _, m := range v.members {
		switch {
		case m.name == "function" && m.val.kind == kindObject:
			inner, ok := callFromObject(m.val)
			if !ok || l.name != "" {
				return l, false
			}
			l = inner
		case slices.Contains(nameKeys, m.name) && m.val.kind == kindString && l.name == "":
			l.name = m.val.str()
		case slices.Contains(argumentKeys, m.name) && isSchema(m.val):
			return l, false // the object defines a tool
		case slices.Contains(argumentKeys, m.name) && l.args == "":
			if l.args = m.val.render(); m.val.kind == kindString {
				l.args = m.val.str()
			}
		case otherKeys.MatchString(m.name):
		case len(v.members) == 1 && m.val.kind == kindObject && functionName.FindString(m.name) == m.name:
			return textCall{name: m.name, args: m.val.render()}, true
		default:
			return l, false
		}
	}
	return l, l.name != ""
}

// isSchema reports whether a value is a schema of arguments.
func isSchema(v *value) bool {
	t, properties := v.get("type"), v.get("properties")
	return t != nil && t.kind == kindString && t.str() == "object" && properties != nil && properties.kind == kindObject
}

// The members of a JSON call other than its arguments.
var (
	nameKeys  = []string{"name", "function", "tool", "tool_name"}
	otherKeys = recovery.NewPattern(`^(?:type|index|\w*id)$`)
)
