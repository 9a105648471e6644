package transcript

// AppendNote adds ephemeral text for the model at the end of the history: to
// the user's message that ends it, else as a new user's message. Every upstream accepts
// a user's message there, also after results of tools, while some refuse two in
// a row. If the history ends with a prefill, the note goes before it: behind it,
// the model would not continue the prefill. Only the end of the history changes, so
// cached prefixes stay valid. Call it once, before messages are added.
func (e *Editor) AppendNote(text string) *Editor {
	e.general()
	list := e.body.Messages()
	end := len(list)
	if begun, ok := e.body.Prefill(); ok {
		end = begun.Index
	}
	if last := end - 1; last >= 0 && list[last].Role == RoleUser && e.history[int(list[last].first)] == nil {
		raw, _ := list[last].content()
		switch {
		case isString(raw):
			in := String("\n\n" + text)
			return e.splice(raw, append(clipped(raw[:len(raw)-1]), in[1:]...))
		case isList(raw):
			return e.splice(raw, withPart(raw, e.body.format.reader().textPart(text, nil)))
		}
	}
	note := e.body.note(text)
	if end == len(list) {
		e.tail = append(e.tail, note)
		return e
	}
	h := e.element(int(list[end].first))
	h.before = append(h.before, note)
	return e
}

// note returns a user's message.
func (b *Body) note(text string) []byte { return b.format.reader().message(RoleUser, text, nil) }

// withPart returns a list of parts with one more.
func withPart(parts, part []byte) []byte {
	out := append([]byte(nil), parts[:len(parts)-1]...)
	if !emptyList(parts) {
		out = append(out, ',')
	}
	return append(append(out, part...), ']')
}
