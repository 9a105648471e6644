package repair

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// resolve follows the local references of a schema; nil if it is no object.
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

// alternatives returns the alternatives that a schema allows, with references resolved. It
// charges what they list, which covers the caller's work on them.
func (c *coercer) alternatives(s any, depth int) (out []map[string]any) {
	m := c.resolve(s)
	if m == nil || depth > 8 || *c.workLeft <= 0 {
		return nil
	}
	*c.workLeft -= 1 + listedCount(m)
	for _, word := range []string{"anyOf", "oneOf"} {
		if alternatives, ok := m[word].([]any); ok {
			for _, a := range alternatives[:min(len(alternatives), 64)] {
				out = append(out, c.alternatives(a, depth+1)...)
			}
		}
	}
	if len(out) > 0 && m["properties"] == nil && m["type"] == nil {
		return out
	}
	return append([]map[string]any{m}, out...)
}

// allowedTypes returns the types that one alternative allows; nil allows all.
func allowedTypes(m map[string]any) []string {
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

// enumValues returns the values that a schema enumerates.
func enumValues(m map[string]any) ([]any, bool) {
	if values, ok := m["enum"].([]any); ok && len(values) > 0 {
		return values, true
	}
	if v, ok := m["const"]; ok {
		return []any{v}, true
	}
	return nil, false
}

// typeOfKind maps kinds to the names of types in a schema.
var typeOfKind = [...]string{kindNull: "null", kindBool: "boolean", kindNumber: "number", kindString: "string", kindArray: "array", kindObject: "object"}

// hasType reports whether a value has one of the types; nil allows all.
func (v *value) hasType(types []string) bool {
	return types == nil || slices.Contains(types, typeOfKind[v.kind]) || v.kind == kindNumber && integral(v.text) && slices.Contains(types, "integer")
}

// integral reports whether a number is an integer without an exponent; 2.0 counts.
func integral(s string) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	return !strings.ContainsAny(s, "eE") && whole != "" && strings.Trim(fraction, "0") == ""
}

// onlyDeclared reports whether all names in a value are properties of its schema,
// apart from their spelling. Another name shows that the text was misread.
func onlyDeclared(v *value, doc any, work *int) bool {
	c := &coercer{root: doc, workLeft: work}
	return c.onlyDeclared(v, doc, 0)
}

func (c *coercer) onlyDeclared(v *value, s any, depth int) bool {
	if *c.workLeft--; *c.workLeft <= 0 || depth > maxDepth {
		return false
	}
	known := map[string]any{}
	open := false
	var items []any
	for _, f := range c.alternatives(s, 0) {
		parts := append([]any{f}, listItems(f["allOf"])...)
		for _, part := range parts {
			m := c.resolve(part)
			for name, p := range propertiesIn(m) {
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
		if !ok && len(known) > 0 && !open || !isName(m.name) || ok && !c.onlyDeclared(m.val, p, depth+1) {
			return false
		}
	}
	for _, item := range v.items {
		if len(items) == 1 && !c.onlyDeclared(item, items[0], depth+1) {
			return false
		}
	}
	return true
}

// isName reports whether a name consists of letters, digits, and the signs _ - . $.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-' && c != '.' && c != '$'
	})
}

func propertiesIn(m map[string]any) map[string]any {
	p, _ := m["properties"].(map[string]any)
	return p
}
