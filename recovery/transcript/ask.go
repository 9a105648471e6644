package transcript

// Ask builds a request with instructions and one message of the user, for a
// model that b would go to: in b's format, with the field that b limits its
// output with, if it does. It asks for no stream.
func (b *Body) Ask(model, system, user string, maxOutput int) []byte {
	limit, _, _ := b.OutputLimit()
	return b.format.reader().ask(model, system, user, limit, maxOutput)
}

func (chat) ask(model, system, user, limit string, maxOutput int) []byte {
	out := append([]byte(`{"model":`), String(model)...)
	if limit != "" && maxOutput > 0 {
		out = append(AppendString(append(out, ','), limit), ':')
		out = appendInt(out, maxOutput)
	}
	out = append(out, `,"messages":[`...)
	if system != "" {
		out = append(append(append(out, `{"role":"system","content":`...), String(system)...), `},`...)
	}
	out = append(append(out, `{"role":"user","content":`...), String(user)...)
	return append(out, `}]}`...)
}
