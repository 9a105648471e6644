package repair

import (
	"regexp"
	"slices"
	"strings"
)

// objects reads calls as JSON: one object, several, or a list of them.
func (c *cursor) objects() (calls []leaked, ok bool) {
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
			l, ok := fromObject(item)
			if !ok {
				return nil, false
			}
			l.loose = len(rules) > 0
			calls = append(calls, l)
		}
		if c.space(); c.take(";") { // Llama's way to separate several
			c.space()
		}
	}
	return calls, len(calls) > 0
}

// closed reads an object whose last brackets are missing, or one too many,
// before a closing tag, which says that nothing else is.
func (c *cursor) closed() ([]leaked, bool) {
	text, _, ok := strings.Cut(c.rest(), "</")
	if !ok {
		return nil, false
	}
	v, _, err := readTolerant(text, true)
	if err != nil {
		return nil, false
	}
	l, ok := fromObject(v)
	l.loose = true
	c.i += len(text)
	return []leaked{l}, ok
}

// fromObject reads a call from {"name": …, "arguments": …} and its relatives, or from
// Apertus' {"name": {…}}.
func fromObject(v *value) (l leaked, ok bool) {
	if v.kind != kindObject || len(v.members) > 5 {
		return l, false
	}
	for _, m := range v.members {
		switch {
		case m.name == "function" && m.val.kind == kindObject:
			inner, ok := fromObject(m.val)
			if !ok || l.name != "" {
				return l, false
			}
			l = inner
		case slices.Contains(nameKeys, m.name) && m.val.kind == kindString && l.name == "":
			l.name = m.val.str()
		case slices.Contains(inWrapper, m.name) && l.args == "":
			if l.args = m.val.render(); m.val.kind == kindString {
				l.args = m.val.str()
			}
		case besides.MatchString(m.name):
		case len(v.members) == 1 && m.val.kind == kindObject && named.FindString(m.name) == m.name:
			return leaked{name: m.name, args: m.val.render()}, true
		default:
			return l, false
		}
	}
	return l, l.name != ""
}

// The members of a call as JSON beside its arguments.
var (
	nameKeys = []string{"name", "function", "tool", "tool_name"}
	besides  = regexp.MustCompile(`^(?:type|index|\w*id)$`)
)
