package transcript

// AppendNote adds ephemeral text for the model at the end of the history: to
// the user's message that ends it, else as one of its own. Every upstream takes
// a user's message there, after results of tools too, while some refuse two in
// a row. Nothing but the tail changes, behind the last cache mark.
func (e *Edit) AppendNote(text string) *Edit {
	list := e.body.Messages()
	if n := len(list); n > 0 && len(e.tail) == 0 && list[n-1].Role == RoleUser && e.history[n-1] == nil {
		m := list[n-1]
		raw := m.body.format.reader().content(m.bytes())
		switch {
		case isString(raw):
			note := String("\n\n" + text)
			return e.Replace(e.body.span(raw), append(clipped(raw[:len(raw)-1]), note[1:]...))
		case len(raw) > 1 && raw[0] == '[':
			return e.Replace(e.body.span(raw), e.body.format.reader().appendPart(raw, text))
		}
	}
	return e.AppendMessage(e.body.format.reader().note(text))
}
