package transcript

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// DropNested removes the member field from all objects inside the history and the tools:
// parts of contents, calls, definitions. It keeps fields of messages themselves, and does not
// look into values that models and tools wrote. In a field with a dot, as in cache_control.ttl, the
// second name is a member of the first. It reports whether there was any.
func (e *Editor) DropNested(field string) bool {
	field, inner, within := strings.Cut(field, ".")
	return e.nested(func(_ int, member string, v gjson.Result) ([]byte, bool) {
		if member != field || !within {
			return nil, member == field
		}
		left, err := changedObject([]byte(v.Raw), change{kind: changeDelete, name: inner})
		return left, v.IsObject() && err == nil && string(left) != v.Raw
	})
}

// DropCacheMarks removes the first n marks of the prompt cache: those of the history, then those of
// tools and instructions. It returns false if there are fewer.
func (e *Editor) DropCacheMarks(n int) bool {
	e.nested(func(_ int, member string, v gjson.Result) ([]byte, bool) {
		mark := member == "cache_control" && v.IsObject() && n > 0
		if mark {
			n--
		}
		return nil, mark
	})
	return n == 0
}

// RenameTools renames tools in their definitions, in tool_choice, in the calls of the history
// and in results that name them. It reports whether any changed.
func (e *Editor) RenameTools(rename func(name string) string) bool {
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
	speaks := func(n int) bool { // a "name" in such a message is that of its speaker
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
		if out := nest(gjson.ParseBytes(choice), -1, renamed); !bytes.Equal(out, choice) {
			e.Set("tool_choice", out)
			changed = true
		}
	}
	return e.nested(renamed) || changed
}

// DropToolOptions removes parallel_tool_calls, and tool_choice unless it demands a call, if the
// request offers no tools. It reports whether there was any.
func (e *Editor) DropToolOptions() (changed bool) {
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

// nested changes members of the objects inside the history's elements and inside the
// tools. change returns the new value of a member of element n (-1: of a tool), nil to
// remove it, and false to keep it.
func (e *Editor) nested(change func(n int, member string, v gjson.Result) ([]byte, bool)) (changed bool) {
	for n := range e.body.elements {
		span := e.body.elements[n]
		gjson.ParseBytes(e.body.raw[span.start:span.end]).ForEach(func(k, v gjson.Result) bool {
			if span.split > 0 { // a part itself
				if raw, to := change(n, k.Str, v); to && raw == nil {
					e.element(n).unset(k.Str)
					changed = true
					return true
				} else if to {
					e.element(n).set(k.Str, raw)
					changed = true
					return true
				}
			}
			if (v.IsArray() || v.IsObject()) && !written(k.Str) {
				if out := nest(v, n, change); string(out) != v.Raw {
					e.element(n).set(k.Str, out)
					changed = true
				}
			}
			return true
		})
	}
	fields := []string{e.body.format.layout().offer}
	if e.body.format.layout().blocks {
		fields = append(fields, "system") // blocks, as in the history
	}
	for _, field := range fields {
		list, ok := e.body.Field(field)
		if out := nest(gjson.ParseBytes(list), -1, change); ok && !bytes.Equal(out, list) {
			e.Set(field, out)
			changed = true
		}
	}
	return changed
}

// written reports whether a member's value comes from models, tools or users, so that
// nothing in it belongs to the wire format.
func written(member string) bool {
	switch member {
	case "arguments", "input", "parameters", "input_schema", "schema", "output", "text", "metadata":
		return true
	}
	return false
}

// nest returns a value with its changes. Unchanged values keep their bytes.
func nest(v gjson.Result, n int, change func(n int, member string, v gjson.Result) ([]byte, bool)) []byte {
	if !v.IsArray() && !v.IsObject() {
		return []byte(v.Raw)
	}
	open, end := byte('['), byte(']')
	if v.IsObject() {
		open, end = '{', '}'
	}
	out, touched := []byte{open}, false
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
			raw = nest(member, n, change)
		}
		touched = touched || to || string(raw) != member.Raw
		if len(out) > 1 {
			out = append(out, ',')
		}
		if v.IsObject() {
			out = append(append(out, k.Raw...), ':')
		}
		out = append(out, raw...)
		return true
	})
	if !touched {
		return []byte(v.Raw)
	}
	return append(out, end)
}
