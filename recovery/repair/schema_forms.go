package repair

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// resolve follows local references of a schema.
func (c *coercer) resolve(s any) map[string]any {
	for range 16 {
		m, ok := s.(map[string]any)
		if !ok {
			return nil
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		if s, ok = c.lookup(ref); !ok {
			return nil
		}
	}
	return nil
}

func (c *coercer) lookup(ref string) (any, bool) {
	if ref == "#" {
		return c.root, true
	}
	if !strings.HasPrefix(ref, "#/") {
		return nil, false
	}
	at := c.root
	for part := range strings.SplitSeq(ref[2:], "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if at, ok = m[part]; !ok {
			return nil, false
		}
	}
	return at, true
}

// forms are the alternatives that a schema allows, without references. What is done
// with one afterwards costs no more than what it lists, which is counted here.
func (c *coercer) forms(s any, depth int) (out []map[string]any) {
	m := c.resolve(s)
	if m == nil || depth > 8 || *c.work <= 0 {
		return nil
	}
	*c.work -= 1 + width(m)
	for _, word := range []string{"anyOf", "oneOf"} {
		if alternatives, ok := m[word].([]any); ok {
			for _, a := range alternatives[:min(len(alternatives), 64)] {
				out = append(out, c.forms(a, depth+1)...)
			}
		}
	}
	if len(out) > 0 && m["properties"] == nil && m["type"] == nil {
		return out
	}
	return append([]map[string]any{m}, out...)
}

// kinds are the types that a schema without alternatives allows; nil allows all.
func kinds(m map[string]any) []string {
	var out []string
	switch t := m["type"].(type) {
	case string:
		out = []string{t}
	case []any:
		for _, v := range t {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 {
		if m["properties"] != nil {
			return []string{"object"}
		}
		if m["items"] != nil {
			return []string{"array"}
		}
	}
	if on, _ := m["nullable"].(bool); on && out != nil {
		out = append(slices.Clip(out), "null")
	}
	return out
}

// limits are the values that a schema enumerates.
func limits(m map[string]any) ([]any, bool) {
	if values, ok := m["enum"].([]any); ok && len(values) > 0 {
		return values, true
	}
	if v, ok := m["const"]; ok {
		return []any{v}, true
	}
	return nil, false
}

// kindNames are the types by their names in a schema.
var kindNames = [...]string{kindNull: "null", kindBool: "boolean", kindNumber: "number", kindString: "string", kindArray: "array", kindObject: "object"}

// fits reports whether a value has one of the types.
func (v *value) fits(types []string) bool {
	return types == nil || slices.Contains(types, kindNames[v.kind]) || v.kind == kindNumber && integral(v.text) && slices.Contains(types, "integer")
}

// integral reports whether a number is an integer by its spelling.
func integral(s string) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	return !strings.ContainsAny(s, "eE") && whole != "" && strings.Trim(fraction, "0") == ""
}

// declared reports whether all names in a value are properties of its schema,
// whatever their spelling. A name that is none shows that a text was misread.
func declared(v *value, doc any, work *int) bool {
	c := &coercer{root: doc, work: work}
	return c.declared(v, doc, 0)
}

func (c *coercer) declared(v *value, s any, depth int) bool {
	if *c.work--; *c.work <= 0 || depth > maxDepth {
		return false
	}
	known := map[string]any{}
	open := false
	var items []any
	for _, f := range c.forms(s, 0) {
		parts := append([]any{f}, every(f["allOf"])...)
		for _, part := range parts {
			m := c.resolve(part)
			for name, p := range propertiesOfForm(m) {
				known[trajectory.Plain(name)] = p
			}
			if m["additionalProperties"] == true || m["patternProperties"] != nil {
				open = true
			}
			if _, ok := m["additionalProperties"].(map[string]any); ok {
				open = true
			}
			if m["items"] != nil {
				items = append(items, m["items"])
			}
		}
	}
	for _, m := range v.members {
		p, ok := known[trajectory.Plain(m.name)]
		if !ok && len(known) > 0 && !open || !isName(m.name) || ok && !c.declared(m.val, p, depth+1) {
			return false
		}
	}
	for _, item := range v.items {
		if len(items) == 1 && !c.declared(item, items[0], depth+1) {
			return false
		}
	}
	return true
}

// isName reports whether a name has no more than letters, digits and what joins them.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-' && c != '.' && c != '$'
	})
}

func propertiesOfForm(m map[string]any) map[string]any {
	p, _ := m["properties"].(map[string]any)
	return p
}
