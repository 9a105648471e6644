package repair

import (
	"encoding/json"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// valueKind is the type of a JSON value.
type valueKind uint8

const (
	kindNull valueKind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is a JSON value that keeps the order of its members and the spelling
// of its scalars, so that repairs leave everything else unchanged.
type value struct {
	kind    valueKind
	text    string // a scalar as JSON: null, true, 1.50, "a\u00e9"
	items   []*value
	members []member
}

type member struct {
	name string // decoded
	lit  string // as JSON; empty if it has to be encoded from name
	val  *value
}

// str returns the decoded text of a string.
func (v *value) str() string {
	s, _ := transcript.Decode([]byte(v.text))
	return s
}

func stringValue(s string) *value {
	return &value{kind: kindString, text: string(transcript.String(s))}
}

// get returns the value of the member with that name, nil if there is none.
func (v *value) get(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.val
		}
	}
	return nil
}

// has reports whether the object has a member of that name.
func (v *value) has(name string) bool { return v.get(name) != nil }

// render writes the value as compact JSON.
func (v *value) render() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v *value) write(b *strings.Builder) {
	switch v.kind {
	case kindArray:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			if m.lit != "" {
				b.WriteString(m.lit)
			} else {
				b.Write(transcript.String(m.name))
			}
			b.WriteByte(':')
			m.val.write(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString(v.text)
	}
}

// decoded returns the value in the form that the validator expects.
func (v *value) decoded() any {
	switch v.kind {
	case kindBool:
		return v.text == "true"
	case kindNumber:
		return json.Number(v.text)
	case kindString:
		return v.str()
	case kindArray:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = item.decoded()
		}
		return out
	case kindObject:
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			out[m.name] = m.val.decoded()
		}
		return out
	}
	return nil
}

// equal compares by meaning, except that numbers must have the same spelling and members the same order.
func (v *value) equal(w *value) bool {
	if v.kind != w.kind || len(v.items) != len(w.items) || len(v.members) != len(w.members) {
		return false
	}
	for i := range v.items {
		if !v.items[i].equal(w.items[i]) {
			return false
		}
	}
	for i := range v.members {
		if v.members[i].name != w.members[i].name || !v.members[i].val.equal(w.members[i].val) {
			return false
		}
	}
	if v.kind == kindString {
		return v.text == w.text || v.str() == w.str()
	}
	return v.text == w.text
}
