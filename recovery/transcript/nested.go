package transcript

import (
	"slices"
	"strings"
)

// DropNested removes the member field from all objects inside the history and the tools:
// parts of contents, calls, definitions. It keeps fields of messages themselves, and does not
// look into values that models and tools wrote. In a field with a dot, as in cache_control.ttl, the
// second name is a member of the first. It reports whether there was any.
func (e *Editor) DropNested(field string) bool {
	field, inner, within := strings.Cut(field, ".")
	return e.nested(func(_ int, member string, v []byte) ([]byte, bool) {
		switch {
		case member != field:
			return nil, false
		case !within:
			return nil, true
		}
		left := changedObject(v, unsetField(inner))
		return left, len(left) < len(v)
	})
}

// DropEmptyDescriptions removes descriptions of tools that say nothing. It reports whether there was any.
func (e *Editor) DropEmptyDescriptions() bool {
	return e.nested(func(n int, member string, v []byte) ([]byte, bool) {
		return nil, n < 0 && member == "description" && string(v) == `""`
	})
}

// DropCacheMarks removes the first n marks of the prompt cache: those of the history, then those of
// tools and instructions. It returns false if there are fewer.
func (e *Editor) DropCacheMarks(n int) bool {
	e.nested(func(_ int, member string, v []byte) ([]byte, bool) {
		mark := member == "cache_control" && isObject(v) && n > 0
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
	renamed := func(n int, member string, v []byte) ([]byte, bool) {
		if member != "name" || n >= 0 && speaks(n) {
			return nil, false
		}
		to := named[text(v)]
		return String(to), to != ""
	}
	changed := false
	for n := range e.body.elements {
		v, _ := member(e.body.element(n), "name")
		if to, ok := renamed(n, "name", v); ok {
			e.element(n).set("name", to)
			changed = true
		}
	}
	choice, _ := e.body.Field("tool_choice")
	if out, ok := nest(choice, -1, renamed); ok {
		e.Set("tool_choice", out)
		changed = true
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
		if v, ok := e.body.Field(field); ok && (field == "parallel_tool_calls" || string(v) == `"auto"` || string(v) == `"none"` || isNull(v) || slices.Contains([]string{"auto", "none"}, stringField(v, "type"))) {
			e.Delete(field)
			changed = true
		}
	}
	return changed
}

// nestedChange returns the new value of a member of element n (-1: of a tool), nil to
// remove it, and false to keep it.
type nestedChange func(n int, member string, v []byte) ([]byte, bool)

// nested changes members of the objects inside the history's elements and inside the
// tools. It reports whether any changed.
func (e *Editor) nested(edit nestedChange) (changed bool) {
	for n := range e.body.elements {
		for name, v := range fieldsOf(e.body.element(n)) {
			raw, ok := []byte(nil), false
			if e.body.elements[n].split > 0 { // a part itself
				raw, ok = edit(n, string(name), v)
			}
			if !ok && !written(name) {
				raw, ok = nest(v, n, edit)
			}
			if ok {
				h := e.element(n)
				h.fields = append(h.fields, setOrUnset(name, raw))
				changed = true
			}
		}
	}
	fields := []string{e.body.format.layout().offer}
	if e.body.format == Messages {
		fields = append(fields, "system") // blocks, as in the history
	}
	for _, field := range fields {
		list, _ := e.body.Field(field)
		if out, ok := nest(list, -1, edit); ok {
			e.Set(field, out)
			changed = true
		}
	}
	return changed
}

// written reports whether a member's value comes from models, tools or users, so that
// nothing in it belongs to the wire format.
func written(member []byte) bool {
	switch string(member) {
	case "arguments", "input", "parameters", "input_schema", "schema", "output", "text", "metadata":
		return true
	}
	return false
}

// nest returns a value with the changes to objects inside it, and false if there are none.
func nest(value []byte, n int, edit nestedChange) (out []byte, changed bool) {
	if isList(value) {
		var list [][]byte
		for v := range elementsOf(value) {
			raw, ok := nest(v, n, edit)
			list, changed = append(list, raw), changed || ok
		}
		if !changed {
			return value, false
		}
		return List(list), true
	}
	var changes []change
	for name, v := range fieldsOf(value) {
		if written(name) {
			continue
		}
		raw, ok := edit(n, string(name), v)
		if !ok {
			raw, ok = nest(v, n, edit)
		}
		if ok {
			changes = append(changes, setOrUnset(name, raw))
		}
	}
	return changedObject(value, changes...), len(changes) > 0
}

// setOrUnset returns the change that a nestedChange means.
func setOrUnset(name, raw []byte) change {
	if raw == nil {
		return unsetField(string(name))
	}
	return setField(string(name), raw)
}
