package repair

import (
	"slices"
	"strings"
)

// relaxer rewrites a schema so that it does not check format, pattern, and properties
// that are not listed: answers may violate these. If relaxing a part makes its
// parent stricter (not, if), the parent is removed. oneOf becomes anyOf.
type relaxer struct {
	count int      // subschemas
	enums int      // values of the largest enumeration
	refs  []string // all references
}

// root relaxes a whole document.
func (x *relaxer) root(doc any) any {
	out, _ := x.schema(doc)
	if m, ok := out.(map[string]any); ok {
		// The library would have to load a dialect that is not one of the standard ones.
		if s, ok := m["$schema"].(string); !ok || !strings.Contains(s, "://json-schema.org/") {
			delete(m, "$schema")
		}
	}
	return out
}

// refsAreLocal reports whether all references stay inside the document.
func (x *relaxer) refsAreLocal() bool {
	return !slices.ContainsFunc(x.refs, func(ref string) bool { return strings.Contains(strings.TrimPrefix(ref, "#"), ":") })
}

// schema returns a relaxed copy of a schema or of a list of schemas; loose is true if it
// may accept more than the original.
func (x *relaxer) schema(v any) (out any, loose bool) {
	if list, ok := v.([]any); ok {
		r := make([]any, len(list))
		for i := range list {
			var sub bool
			r[i], sub = x.schema(list[i])
			loose = loose || sub
		}
		return r, loose
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v, false
	}
	if x.count++; x.count > maxSubschemas {
		return true, true
	}
	r := make(map[string]any, len(m))
	for key, val := range m {
		sub := false
		switch key {
		case "format", "pattern", "contentEncoding", "contentMediaType", "contentSchema", "maxContains":
			loose = true
			continue
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			val, sub = x.schemaMap(val)
			sub = sub && key != "$defs" && key != "definitions" // references count, see below
		case "additionalProperties", "unevaluatedProperties", "items", "allOf", "anyOf", "oneOf", "prefixItems", "contains",
			"propertyNames", "not", "if", "then", "else", "additionalItems", "unevaluatedItems":
			if val == false && strings.HasSuffix(key, "Properties") {
				loose = true
				continue
			}
			val, sub = x.schema(val)
			sub = sub || key == "oneOf"
		case "$ref", "$dynamicRef", "$recursiveRef":
			if s, ok := val.(string); ok {
				x.refs = append(x.refs, s)
			}
			sub = true // what it refers to may be relaxed
		case "enum":
			list, _ := val.([]any)
			x.enums = max(x.enums, len(list))
		}
		loose = loose || sub
		if !sub || key != "not" && key != "if" { // then and else mean nothing without if
			r[key] = val
		}
	}
	if alternatives, ok := r["oneOf"]; ok {
		delete(r, "oneOf")
		all, _ := r["allOf"].([]any)
		r["allOf"] = append(slices.Clip(all), map[string]any{"anyOf": alternatives})
	}
	expandNullable(r)
	return r, loose
}

// schemaMap relaxes the schemas in an object such as properties.
func (x *relaxer) schemaMap(v any) (out any, loose bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, false
	}
	r := make(map[string]any, len(m))
	for key, val := range m {
		s, sub := x.schema(val)
		r[key], loose = s, loose || sub
	}
	return r, loose
}

// expandNullable replaces OpenAPI's nullable by the type null.
func expandNullable(r map[string]any) {
	if on, ok := r["nullable"].(bool); !ok || !on {
		return
	}
	if t, ok := r["type"].(string); ok {
		r["type"] = []any{t, "null"}
	}
	if list, ok := r["enum"].([]any); ok && !slices.Contains(list, nil) {
		r["enum"] = append(slices.Clip(list), nil)
	}
	delete(r, "nullable")
}
