package conform

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// typer writes a schema so that servers with a strict subset of JSON Schema accept it: each part has a type, or alternatives
// that have one, and references are replaced by what they refer to.
type typer struct {
	root gjson.Result
	left int // bytes that may still be written
	most int // how deep schemas are nested

	alone bool // nothing stands beside alternatives
}

// The limits for the nesting of schemas and of references within each other. Servers count ten levels of JSON, of which each schema is
// two; maxFlat is below that.
const (
	maxTyped = 16
	maxFlat  = 3
)

// typed returns a schema in the form of t, and false if it has it already.
func typed(v gjson.Result, t typer) (out []byte, changed bool) {
	if !v.Get("type").Exists() && !v.Get("anyOf").Exists() {
		return asObject(v)
	}
	t.root, t.left = v, 8*len(v.Raw)+1<<16
	out = t.schema(nil, v, 0)
	return out, t.left >= 0 && gjson.GetBytes(out, "@ugly").Raw != v.Get("@ugly").Raw
}

// schema appends one schema.
func (t *typer) schema(dst []byte, v gjson.Result, depth int) []byte {
	if t.left -= len(v.Raw); !v.IsObject() || t.left < 0 {
		return append(dst, `{"type":"string"}`...)
	}
	if depth > t.most {
		return t.withoutParts(dst, v)
	}
	if to, ok := t.target(v); ok {
		return t.schema(dst, to, depth+1)
	}
	var list []member
	kinds, parts := v.Get("anyOf"), v.Get("properties")
	alternatives := kinds.IsArray() && everyTyped(kinds)
	v.ForEach(func(k, v gjson.Result) bool {
		switch {
		case k.Str == "$ref", k.Str == "$defs", k.Str == "definitions", k.Str == "$schema":
		case k.Str == "anyOf" && !alternatives, k.Str == "type" && alternatives, k.Str == "items" && alternatives, k.Str == "properties" && alternatives:
		case k.Str == "type" && v.IsArray():
			list = append(list, oneType(v))
		case k.Str == "required":
			list = append(list, member{k.Str, k.Raw + ":" + known(v, parts)})
		case k.Str == "properties":
			list = append(list, member{k.Str, k.Raw + ":" + string(t.named(nil, v, depth))})
		case k.Str == "items" && v.IsObject():
			list = append(list, member{k.Str, k.Raw + ":" + string(t.schema(nil, v, depth+1))})
		case k.Str == "anyOf":
			var all []string
			for _, one := range v.Array() {
				all = append(all, string(t.schema(nil, one, depth+1)))
			}
			list = append(list, member{k.Str, k.Raw + ":[" + strings.Join(all, ",") + "]"})
		default:
			list = append(list, member{k.Str, k.Raw + ":" + v.Raw})
		}
		return true
	})
	if !alternatives && !v.Get("type").Exists() {
		list = append(list, member{"type", `"type":"` + typeOf(v) + `"`})
	}
	if at := slices.IndexFunc(list, func(m member) bool { return m.name == "anyOf" }); t.alone && at >= 0 {
		return append(append(append(dst, '{'), t.said(v, list[at].raw)...), '}')
	}
	return append(appendOnce(append(dst, '{'), list), '}')
}

// said returns the alternatives of a schema; the first one gets the description of the schema if it has none.
func (t *typer) said(v gjson.Result, alternatives string) string {
	first := gjson.Get("{"+alternatives+"}", "anyOf.0")
	if v.Get("description").Exists() && first.IsObject() && !first.Get("description").Exists() {
		told := strings.TrimSuffix(first.Raw, "}") + `,"description":` + v.Get("description").Raw + "}"
		return strings.Replace(alternatives, first.Raw, told, 1)
	}
	return alternatives
}

// withoutParts appends a schema that is nested too deep with its type and description only.
func (t *typer) withoutParts(dst []byte, v gjson.Result) []byte {
	if to, ok := t.target(v); ok {
		v = to
	}
	deep := hasParts(v) || hasParts(v.Get("items")) || v.Get("items.items").Exists()
	if !deep && v.Get("type").Type == gjson.String {
		return append(dst, v.Raw...)
	}
	said := v.Get("description").Str
	if deep {
		said = strings.TrimSpace(said + " (its parts are not listed)")
	}
	dst = append(dst, `{"type":"`+typeOf(v)+`"`...)
	if typeOf(v) == "array" {
		dst = append(dst, `,"items":{"type":"string"}`...)
	}
	if said != "" {
		dst = append(append(dst, `,"description":`...), transcript.String(said)...)
	}
	return append(dst, '}')
}

// hasParts reports whether a schema has properties or alternatives of its own.
func hasParts(v gjson.Result) bool {
	return v.Get("properties").Exists() || v.Get("anyOf").Exists() || v.Get("$ref").Exists()
}

// oneType returns a list of types as one, or as alternatives. A value that may be null may be left out as well.
func oneType(types gjson.Result) member {
	var all []string
	for _, kind := range types.Array() {
		if kind.Str != "null" {
			all = append(all, `{"type":`+kind.Raw+`}`)
		}
	}
	switch len(all) {
	case 0:
		return member{"type", `"type":"null"`}
	case 1:
		return member{"type", strings.Trim(all[0], "{}")}
	}
	return member{"anyOf", `"anyOf":[` + strings.Join(all, ",") + "]"}
}

// known returns the names of a list that are properties of the schema.
func known(required, properties gjson.Result) string {
	var names []string
	for _, name := range required.Array() {
		if properties.Get(gjson.Escape(name.Str)).Exists() {
			names = append(names, name.Raw)
		}
	}
	return "[" + strings.Join(names, ",") + "]"
}

// named appends an object whose values are schemas.
func (t *typer) named(dst []byte, v gjson.Result, depth int) []byte {
	var list []member
	v.ForEach(func(k, v gjson.Result) bool {
		list = append(list, member{k.Str, k.Raw + ":" + string(t.schema(nil, v, depth+1))})
		return true
	})
	return append(appendOnce(append(dst, '{'), list), '}')
}

// target returns what a schema refers to within the same document.
func (t *typer) target(v gjson.Result) (to gjson.Result, ok bool) {
	steps, ok := strings.CutPrefix(v.Get("$ref").Str, "#/")
	if !ok {
		return to, false
	}
	to = t.root
	for step := range strings.SplitSeq(steps, "/") {
		to = to.Get(gjson.Escape(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)))
	}
	return to, to.IsObject()
}

// everyTyped reports whether all alternatives say what they are.
func everyTyped(list gjson.Result) bool {
	for _, one := range list.Array() {
		if !one.Get("type").Exists() && !one.Get("$ref").Exists() && !one.Get("anyOf").Exists() {
			return false
		}
	}
	return true
}

// typeOf guesses the type of a schema without one.
func typeOf(v gjson.Result) string {
	first := v.Get("enum.0")
	switch {
	case v.Get("type").Type == gjson.String:
		return v.Get("type").Str
	case v.Get("properties").Exists():
		return "object"
	case v.Get("items").Exists():
		return "array"
	case first.Type == gjson.Number:
		return "number"
	case first.IsBool():
		return "boolean"
	}
	return "string"
}
