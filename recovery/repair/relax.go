package repair

import (
	"slices"
	"strings"
)

// relaxer rewrites a schema so that it does not check what passes anyway:
// format, pattern, and properties that are not listed. Where relaxing a part
// would make the whole stricter (not, if) or let several alternatives match
// (oneOf), the whole is relaxed too.
type relaxer struct {
	count int      // subschemas
	enums int      // values of the largest enumeration
	refs  []string // all references
}

// root relaxes a whole document.
func (x *relaxer) root(doc any) any {
	out, _ := x.schema(doc)
	if m, ok := out.(map[string]any); ok {
		// A dialect that is not one of the standard ones would have to be loaded.
		if s, ok := m["$schema"].(string); !ok || !strings.Contains(s, "://json-schema.org/") {
			delete(m, "$schema")
		}
	}
	return out
}

// inside reports whether all references stay inside of the document.
func (x *relaxer) inside() bool {
	return !slices.ContainsFunc(x.refs, func(ref string) bool { return strings.Contains(strings.TrimPrefix(ref, "#"), ":") })
}

// schema returns a relaxed copy; loose is set if it accepts more than the original may.
func (x *relaxer) schema(v any) (out any, loose bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return v, false
	}
	if x.count++; x.count > maxSubschemas {
		return true, true
	}
	var exclusive any // a oneOf that becomes alternatives
	r := make(map[string]any, len(m))
	for key, val := range m {
		sub := false
		switch key {
		case "format", "pattern", "contentEncoding", "contentMediaType", "contentSchema":
			loose = true
			continue
		case "additionalProperties", "unevaluatedProperties":
			if open, ok := val.(bool); ok && !open {
				loose = true
				continue
			}
			r[key], sub = x.schema(val)
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			r[key], sub = x.named(val)
			if key == "$defs" || key == "definitions" {
				sub = false // they count where they are referred to
			}
		case "items", "allOf", "anyOf", "oneOf", "prefixItems", "contains", "propertyNames", "not", "if", "then", "else",
			"additionalItems", "unevaluatedItems":
			r[key], sub = x.any(val)
		case "$ref", "$dynamicRef", "$recursiveRef":
			if s, ok := val.(string); ok {
				x.refs = append(x.refs, s)
			}
			r[key], sub = val, true // what it refers to may be relaxed
		case "enum":
			if list, ok := val.([]any); ok {
				x.enums = max(x.enums, len(list))
			}
			r[key] = val
		default:
			r[key] = val
		}
		loose = loose || sub
		if !sub {
			continue
		}
		switch key {
		case "not":
			delete(r, key)
		case "if":
			r[key] = nil // marked: below
		case "oneOf":
			exclusive = r[key]
			delete(r, key)
		}
	}
	if exclusive != nil {
		all, _ := r["allOf"].([]any)
		r["allOf"] = append(slices.Clip(all), map[string]any{"anyOf": exclusive})
	}
	if cond, ok := r["if"]; ok && cond == nil {
		delete(r, "if")
		delete(r, "then")
		delete(r, "else")
	}
	if loose {
		delete(r, "maxContains")
	}
	nullable(r)
	return r, loose
}

// nullable honours OpenAPI's word for "or null".
func nullable(r map[string]any) {
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

func (x *relaxer) any(v any) (out any, loose bool) {
	list, ok := v.([]any)
	if !ok {
		return x.schema(v)
	}
	r := make([]any, len(list))
	for i := range list {
		s, sub := x.schema(list[i])
		r[i], loose = s, loose || sub
	}
	return r, loose
}

func (x *relaxer) named(v any) (out any, loose bool) {
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
