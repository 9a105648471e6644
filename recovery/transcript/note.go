package transcript

// note is the ephemeral text that an edit adds at the end of the history.
type note struct {
	text  string
	bytes func(text string) []byte // encodes the text; nil without a note
	in    *[][]byte                // the list that holds the encoded note
	at    int                      // its index there
}

// AppendNote adds ephemeral text for the model at the end of the history: to
// the user's message that ends it, else as a new user's message. Every upstream accepts
// a user's message there, also after results of tools, while some refuse two in
// a row. If the history ends with a prefill, the note goes before it: behind it,
// the model would not continue the prefill. Only the end of the history changes, so
// cached prefixes stay valid. A second note is appended to the first.
func (e *Editor) AppendNote(text string) *Editor {
	n := &e.note
	if n.bytes != nil {
		n.text += "\n\n" + text
		(*n.in)[n.at] = n.bytes(n.text)
		return e
	}
	e.general()
	n.text = text
	r, list := e.body.format.reader(), e.body.Messages()
	end := len(list)
	if begun, ok := e.body.Prefill(); ok && len(e.tail) == 0 {
		end = begun.Index
	}
	if last := end - 1; last >= 0 && len(e.tail) == 0 && list[last].Role == RoleUser && e.history[int(list[last].first)] == nil {
		raw, _ := list[last].content()
		switch {
		case isString(raw):
			n.bytes = func(text string) []byte {
				in := String("\n\n" + text)
				return append(clipped(raw[:len(raw)-1]), in[1:]...)
			}
		case len(raw) > 1 && raw[0] == '[':
			n.bytes = func(text string) []byte { return withPart(raw, r.textPart(text, nil)) }
		}
		if n.bytes != nil {
			n.in = &e.inside
			e.inside, e.insideAt = [][]byte{n.bytes(text)}, e.body.span(raw)
			return e
		}
	}
	n.bytes, n.in = e.body.note, &e.tail
	if end < len(list) {
		n.in = &e.element(int(list[end].first)).before
	}
	n.at = len(*n.in)
	*n.in = append(*n.in, e.body.note(text))
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
