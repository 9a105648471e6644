package transcript

import "strconv"

// Continue asks for the continuation of an answer that begins with text, in
// one of the ways that servers offer:
//
//   - "assistant": a trailing assistant message (Anthropic, OpenRouter, Mistral)
//   - "prefix": the same, marked "prefix": true (DeepSeek, Mistral)
//   - "continue_final_message": vLLM's and SGLang's switch, which excludes
//     add_generation_prompt
//
// Only where the format Prefills. Where the client itself begins the answer, text goes on from its words, in
// the same message: it is that one that a server continues.
func (e *Edit) Continue(text, how string) *Edit {
	if !e.goOn(text, how) {
		e.appendBeginning(text, how)
	}
	if how == "continue_final_message" {
		e.Set("continue_final_message", []byte("true"))
		e.Set("add_generation_prompt", []byte("false"))
	}
	return e
}

// Interrupt tells the model that its answer, of which text is the beginning,
// was interrupted: that answer, and behind it what a user says of it.
func (e *Edit) Interrupt(text, said string) *Edit {
	if !e.goOn(text, "") {
		e.AppendMessage(e.body.TextMessage(RoleAssistant, text, nil))
	}
	return e.AppendMessage(e.body.note(said))
}

// Sampled reports whether the same request may be answered in other words: unless
// it asks for a temperature of 0, or for a seed.
func (b *Body) Sampled() bool {
	if seed, ok := b.Field("seed"); ok && !isNull(seed) {
		return false
	}
	t, ok := b.Field("temperature")
	if !ok {
		return true
	}
	n, err := strconv.ParseFloat(string(t), 64)
	return err != nil || n != 0
}

// goOn adds text to the client's beginning of the answer, if there is one.
func (e *Edit) goOn(text, how string) bool {
	begun, ok := e.body.Begun()
	if !ok || len(e.tail) > 0 {
		return false
	}
	at, ok := begun.Content()
	if raw := e.body.raw[at.Start:at.End]; !ok || !isString(raw) {
		return false
	}
	e.Replace(at, append(clipped(e.body.raw[at.Start:at.End-1]), String(text)[1:]...))
	if how == "prefix" {
		e.SetMessageField(begun.Index, "prefix", []byte("true"))
	}
	return true
}

// appendBeginning is a message of the model that begins with text.
func (e *Edit) appendBeginning(text, how string) {
	msg := e.body.TextMessage(RoleAssistant, text, nil)
	if how == "prefix" {
		msg = append(msg[:len(msg)-1], `,"prefix":true}`...)
	}
	e.AppendMessage(msg)
}

// Begun is the message that the history ends with, where that is the model's
// own and calls nothing: the beginning of an answer, written by the client, that
// the model is to continue (a prefill).
func (b *Body) Begun() (m Message, ok bool) {
	list := b.Messages()
	if len(list) == 0 || !b.Prefills() {
		return Message{}, false
	}
	m = list[len(list)-1]
	return m, m.Role == RoleAssistant && len(m.ToolCalls()) == 0
}

// Prefills reports whether the format has a way to begin an answer: its last message.
// Elsewhere that is history like any other.
func (b *Body) Prefills() bool { return b.format.layout().prefills }

// SetInt gives a top-level field an integer.
func (e *Edit) SetInt(field string, n int) *Edit {
	return e.Set(field, strconv.AppendInt(nil, int64(n), 10))
}

// HasRole reports whether a message of the history has this role on the wire.
func (b *Body) HasRole(role string) bool {
	for _, m := range b.Messages() {
		if m.Role == role {
			return true
		}
	}
	return false
}

// ForceCall asks for a call of one function, if the request offers it.
func (e *Edit) ForceCall(name string) *Edit {
	t, ok := e.body.tool(name)
	if !ok || e.body.format.layout().blocks && e.body.Reasoning() { // who thinks cannot be forced there
		return e
	}
	return e.Set("tool_choice", e.body.format.reader().choice(&t))
}

// ForbidCalls asks for text. The definitions of the tools stay, so that a
// cached prompt does.
func (e *Edit) ForbidCalls() *Edit {
	if _, ok := e.body.Field(e.body.format.layout().offer); !ok && !e.body.HasTools() {
		return e
	}
	return e.Set("tool_choice", e.body.format.reader().choice(nil))
}
