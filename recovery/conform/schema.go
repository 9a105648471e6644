package conform

import (
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// schemas rewrites the parameters of all tools.
func schemas(b *transcript.Body, e *transcript.Editor, ed recovery.Edit) bool {
	r := rewriter{left: maxRead, items: ed.Conform != recovery.ConformKeyword}
	switch ed.Conform {
	case recovery.ConformKeyword:
		r.drop = func(keyword string, _ gjson.Result) bool { return keyword == ed.Field }
	case recovery.ConformPlain:
		r.drop = func(keyword string, _ gjson.Result) bool { return !plain(keyword) }
	case recovery.ConformEnum:
		r.drop = func(keyword string, v gjson.Result) bool {
			return keyword == "enum" && v.IsArray() && v.Get("0").Type != gjson.String
		}
	}
	changed := false
	meant := meantTools(b, ed)
	for _, t := range b.Tools() {
		if len(t.Parameters) == 0 || t.Parameters[0] != '{' || !meant(t) {
			continue
		}
		var out []byte
		r.changed = false
		switch ed.Conform {
		case recovery.ConformObject:
			out, r.changed = asObject(gjson.ParseBytes(t.Parameters))
		case recovery.ConformTyped:
			out, r.changed = typed(gjson.ParseBytes(t.Parameters), typer{most: maxTyped})
		case recovery.ConformFlat:
			out, r.changed = typed(gjson.ParseBytes(t.Parameters), typer{most: maxFlat})
		case recovery.ConformAlone:
			out, r.changed = typed(gjson.ParseBytes(t.Parameters), typer{most: maxTyped, alone: true})
		default:
			out = r.schema(nil, gjson.ParseBytes(t.Parameters), 0)
		}
		if r.changed {
			e.Replace(t.Span, out)
			changed = true
		}
	}
	return changed
}

// meantTools returns a function that reports whether an edit concerns a tool.
func meantTools(b *transcript.Body, ed recovery.Edit) func(transcript.Tool) bool {
	if ed.Conform == recovery.ConformKeyword || ed.Field == "" || ed.Field == recovery.ToolsMark(b.Tools()) {
		return func(transcript.Tool) bool { return true }
	}
	return func(t transcript.Tool) bool { return ed.Field == recovery.SchemaMark(t.Parameters) }
}

// plain reports whether every provider's subset of JSON Schema has a keyword.
func plain(keyword string) bool {
	switch keyword {
	case "type", "description", "properties", "required", "items", "enum", "anyOf", "$ref", "$defs", "definitions":
		return true
	}
	return false
}

// rewriter copies a schema without some keywords. It distinguishes keywords from property names, which may be equal to
// keywords.
type rewriter struct {
	drop    func(keyword string, value gjson.Result) bool
	items   bool // add items to arrays without them, and remove properties and definitions that are not schemas
	changed bool
	left    int // bytes that may still be read
}

// The limits for a request's schemas. Parts beyond them are copied unchanged.
const (
	maxDepth = 64       // nesting
	maxRead  = 32 << 20 // bytes read in total; nested schemas are read again at each level
)

// schema appends one schema.
func (r *rewriter) schema(dst []byte, v gjson.Result, depth int) []byte {
	if r.left -= len(v.Raw); !v.IsObject() || depth > maxDepth || r.left < 0 {
		return append(dst, v.Raw...)
	}
	dst = append(dst, '{')
	array, items := false, false
	open := len(dst)
	v.ForEach(func(k, v gjson.Result) bool {
		if r.drop != nil && r.drop(k.Str, v) {
			r.changed = true
			return true
		}
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(append(dst, k.Raw...), ':')
		switch k.Str {
		case "type":
			array = v.Str == "array"
			dst = append(dst, v.Raw...)
		case "items", "prefixItems":
			items = true
			dst = r.value(dst, v, depth)
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			dst = r.named(dst, v, depth)
		case "enum", "const", "default", "examples", "required":
			dst = append(dst, v.Raw...)
		default:
			dst = r.value(dst, v, depth)
		}
		return true
	})
	if r.items && array && !items {
		r.changed = true
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(dst, `"items":{}`...)
	}
	return append(dst, '}')
}

// named appends an object whose values are schemas.
func (r *rewriter) named(dst []byte, v gjson.Result, depth int) []byte {
	if !v.IsObject() {
		return append(dst, v.Raw...)
	}
	dst = append(dst, '{')
	open := len(dst)
	v.ForEach(func(k, v gjson.Result) bool {
		if r.items && !v.IsObject() && !v.IsBool() { // not a schema
			r.changed = true
			return true
		}
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(append(dst, k.Raw...), ':')
		dst = r.schema(dst, v, depth+1)
		return true
	})
	return append(dst, '}')
}

// value appends a schema, a list of schemas, or any other value unchanged.
func (r *rewriter) value(dst []byte, v gjson.Result, depth int) []byte {
	switch {
	case v.IsObject():
		return r.schema(dst, v, depth+1)
	case v.IsArray() && depth <= maxDepth:
		dst = append(dst, '[')
		open := len(dst)
		v.ForEach(func(_, v gjson.Result) bool {
			if len(dst) > open {
				dst = append(dst, ',')
			}
			dst = r.value(dst, v, depth+1)
			return true
		})
		return append(dst, ']')
	}
	return append(dst, v.Raw...)
}
