package transcript

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// LoseNested takes the member field out of everything that the history and the tools are
// made of: the parts of contents, the calls, the definitions. Fields of messages themselves
// stay, and so does what models and tools wrote. It reports whether there was any.
func (e *Edit) LoseNested(field string) bool {
	return e.nested(func(_ int, member string, v gjson.Result) ([]byte, bool) {
		return nil, member == field
	})
}

// RenameTools gives tools other names: where they are defined, in what demands a call, in
// the calls of the history and in results that name them. It reports whether any changed.
func (e *Edit) RenameTools(rename func(name string) string) bool {
	named := make(map[string]string)
	note := func(name string) {
		if to := rename(name); to != name {
			named[name] = to
		}
	}
	for _, t := range e.body.Tools() {
		note(t.Name)
	}
	for _, m := range e.body.Messages() {
		for _, c := range m.ToolCalls() {
			note(c.Name)
		}
	}
	if len(named) == 0 {
		return false
	}
	speaks := func(n int) bool { // a name there is that of a person
		switch role := e.body.entry(n).role; role {
		case RoleUser, RoleSystem, RoleDeveloper:
			return true
		}
		return false
	}
	changed := false
	for n := range e.body.elements {
		if speaks(n) {
			continue
		}
		span := e.body.elements[n]
		if v := gjson.GetBytes(e.body.raw[span.start:span.end], "name"); v.Type == gjson.String && named[v.Str] != "" {
			e.element(n).set("name", String(named[v.Str]))
			changed = true
		}
	}
	renamed := func(n int, member string, v gjson.Result) ([]byte, bool) {
		if member != "name" || v.Type != gjson.String || named[v.Str] == "" || n >= 0 && speaks(n) {
			return nil, false
		}
		return String(named[v.Str]), true
	}
	if choice, ok := e.body.Field("tool_choice"); ok {
		if out := nest(nil, gjson.ParseBytes(choice), -1, renamed); !bytes.Equal(out, choice) {
			e.Set("tool_choice", out)
			changed = true
		}
	}
	return e.nested(renamed) || changed
}

// LoseToolOptions takes out what says how tools are called, where no tools are offered. It
// reports whether anything did.
func (e *Edit) LoseToolOptions() (changed bool) {
	if e.body.HasTools() {
		return false
	}
	for _, field := range [...]string{"parallel_tool_calls", "tool_choice"} {
		if v, ok := e.body.Field(field); ok && (field == "parallel_tool_calls" || string(v) == `"auto"` || string(v) == `"none"` || isNull(v)) {
			e.Delete(field)
			changed = true
		}
	}
	return changed
}

// nested changes members of the objects that the fields of the history's elements, and the
// tools, consist of. change returns what becomes of a member of element n (-1: of a tool):
// false leaves it, nil takes it out.
func (e *Edit) nested(change func(n int, member string, v gjson.Result) ([]byte, bool)) (changed bool) {
	for n := range e.body.elements {
		span := e.body.elements[n]
		gjson.ParseBytes(e.body.raw[span.start:span.end]).ForEach(func(k, v gjson.Result) bool {
			if (v.IsArray() || v.IsObject()) && !written(k.Str) {
				if out := nest(nil, v, n, change); string(out) != v.Raw {
					e.element(n).set(k.Str, out)
					changed = true
				}
			}
			return true
		})
	}
	offer := e.body.format.layout().offer
	if list, ok := e.body.Field(offer); ok {
		if out := nest(nil, gjson.ParseBytes(list), -1, change); !bytes.Equal(out, list) {
			e.Set(offer, out)
			changed = true
		}
	}
	return changed
}

// written reports whether models, tools or persons wrote what stands in a member: nothing
// in it belongs to the wire format.
func written(member string) bool {
	switch member {
	case "arguments", "input", "parameters", "input_schema", "schema", "output", "text", "metadata":
		return true
	}
	return false
}

// nest copies a value with its changes. What needs none is copied as it stands.
func nest(dst []byte, v gjson.Result, n int, change func(n int, member string, v gjson.Result) ([]byte, bool)) []byte {
	if !v.IsArray() && !v.IsObject() {
		return append(dst, v.Raw...)
	}
	at, touched := len(dst), false
	open, end := byte('['), byte(']')
	if v.IsObject() {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	v.ForEach(func(k, member gjson.Result) bool {
		raw, to := []byte(nil), false
		switch {
		case v.IsObject() && written(k.Str):
			raw = []byte(member.Raw)
		case v.IsObject():
			if raw, to = change(n, k.Str, member); to && raw == nil {
				touched = true
				return true
			}
		}
		if raw == nil {
			raw = nest(nil, member, n, change)
		}
		touched = touched || to || string(raw) != member.Raw
		if len(dst) > at+1 {
			dst = append(dst, ',')
		}
		if v.IsObject() {
			dst = append(append(dst, k.Raw...), ':')
		}
		dst = append(dst, raw...)
		return true
	})
	if !touched {
		return append(dst[:at], v.Raw...)
	}
	return append(dst, end)
}
