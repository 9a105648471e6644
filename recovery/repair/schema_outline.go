package repair

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// outline is the part of a schema that can be checked on the bytes of a value,
// without decoding it: types, required members, enumerations of strings. Most
// tools demand no more. It only tells that a value certainly passes; whatever
// else it meets is left to the schema itself. It is immutable.
//
// It is there for speed: a call of a recorded session takes 0.9 µs and 2
// allocations with it, 7.6 µs and 29 with the library alone, which is 4 % of what
// an agent's request of 57 KB costs. BenchmarkRecordedCalls measures that.
type outline struct {
	types   typeSet
	enum    []string // nil: any value
	members map[string]listed
	open    bool     // members that are not listed pass
	need    uint64   // bits of the required members
	items   *outline // nil: any
}

// listed is a member that the schema names.
type listed struct {
	outline *outline // nil: cannot be told
	bit     uint64   // of a required member
}

// typeSet are JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBool
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
	typeAny = 1<<iota - 1
)

var typeNames = map[string]typeSet{"null": typeNull, "boolean": typeBool, "integer": typeInteger, "number": typeNumber | typeInteger,
	"string": typeString, "array": typeArray, "object": typeObject}

// The bounds of an outline; what exceeds them cannot be told.
const (
	maxOutline  = 8  // levels of the schema: each is scanned once more
	maxListed   = 64 // required members
	maxOutlined = 32 // values of an enumeration
)

// outlineOf reads a relaxed schema; nil if nothing can be told of it.
func outlineOf(v any, depth int) *outline {
	if on, ok := v.(bool); ok && on {
		return &outline{types: typeAny, open: true}
	}
	m, ok := v.(map[string]any)
	if !ok || depth > maxOutline {
		return nil
	}
	o := &outline{types: typeAny, open: true}
	for key, val := range m {
		switch key {
		case "type":
			o.types, ok = typesOf(val)
		case "enum":
			o.enum, ok = stringsIn(val, maxOutlined)
		case "items":
			o.items = outlineOf(val, depth+1)
			ok = o.items != nil
		case "properties":
			ok = o.list(val, depth)
		case "required":
			ok = o.require(val)
		case "additionalProperties":
			o.open, _ = val.(bool)
		case "$defs", "definitions": // only what refers to them
		case "title", "description", "default", "examples", "$schema", "$comment", "deprecated", "readOnly", "writeOnly", "nullable":
		default:
			ok = false
		}
		if !ok {
			return nil
		}
	}
	return o
}

// list takes over the properties of a schema.
func (o *outline) list(v any, depth int) bool {
	properties, ok := v.(map[string]any)
	for name, p := range properties {
		o.put(name, func(l *listed) { l.outline = outlineOf(p, depth+1) })
	}
	return ok
}

// require takes over the names of the members that must be there.
func (o *outline) require(v any) bool {
	names, ok := stringsIn(v, maxListed)
	for i, name := range names {
		o.need |= 1 << i
		o.put(name, func(l *listed) { l.bit |= 1 << i })
	}
	return ok
}

// put changes what is told of a member. A required one that no property
// describes can be anything, which only its value being left alone says.
func (o *outline) put(name string, change func(*listed)) {
	if o.members == nil {
		o.members = map[string]listed{}
	}
	l := o.members[name]
	change(&l)
	o.members[name] = l
}

func typesOf(v any) (types typeSet, ok bool) {
	names := []any{v}
	if list, ok := v.([]any); ok {
		names = list
	}
	for _, name := range names {
		s, _ := name.(string)
		one, known := typeNames[s]
		if !known {
			return 0, false
		}
		types |= one
	}
	return types, true
}

// stringsIn are the elements of a list of at most so many strings.
func stringsIn(v any, most int) (out []string, ok bool) {
	list, ok := v.([]any)
	if !ok || len(list) > most {
		return nil, false
	}
	out = make([]string, 0, len(list))
	for _, item := range list {
		s, ok := item.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// certainly reports whether a text is valid JSON, an object, and accepted by the
// schema. False says nothing.
func (s *schema) certainly(text string) bool {
	return s.outline != nil && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") && s.outline.object([]byte(text))
}

// object reports whether raw, which begins like an object, is a valid one that
// certainly passes.
func (o *outline) object(raw []byte) bool {
	var d transcript.Document
	c, ok := d.Open(raw, maxDepth)
	if !ok || o.types&typeObject == 0 || o.enum != nil {
		return false
	}
	seen := uint64(0)
	for c.Next() {
		l, known := o.members[string(c.Name())]
		valid := utf8.Valid(c.Name()) // else it may become a name that is listed
		v := c.Value()
		switch {
		case v == nil || !valid:
			return false
		case !known && !o.open:
			return false
		case known && (l.outline == nil || !l.outline.passes(v)):
			return false
		}
		seen |= l.bit
	}
	return d.End(c) && seen&o.need == o.need
}

// passes reports whether a valid value certainly passes.
func (o *outline) passes(raw []byte) bool {
	if o.enum != nil {
		return raw[0] == '"' && o.types&typeString != 0 && bytes.IndexByte(raw, '\\') < 0 && slices.Contains(o.enum, string(raw[1:len(raw)-1]))
	}
	switch raw[0] {
	case '{':
		return o.types&typeObject != 0 && (o.open && len(o.members) == 0 || o.object(raw))
	case '[':
		return o.types&typeArray != 0 && (o.items == nil || o.elements(raw))
	case '"':
		return o.types&typeString != 0
	case 't', 'f':
		return o.types&typeBool != 0
	case 'n':
		return o.types&typeNull != 0
	}
	if o.types&typeNumber != 0 {
		return true
	}
	return o.types&typeInteger != 0 && whole(raw)
}

// elements reports whether all elements of a valid array certainly pass.
func (o *outline) elements(raw []byte) bool {
	var d transcript.Document
	c, ok := d.Open(raw, maxDepth)
	if !ok {
		return false
	}
	for c.Next() {
		if v := c.Value(); v == nil || !o.items.passes(v) {
			return false
		}
	}
	return d.End(c)
}

// whole reports whether a number is written as an integer.
func whole(raw []byte) bool {
	for _, c := range raw[min(1, len(raw)-1):] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
