package transcript

import "strconv"

// Continue asks for the continuation of an answer that begins with text, in
// one of the ways that servers offer:
//
//   - "assistant": a trailing assistant message (Anthropic, OpenRouter, Mistral)
//   - "prefix": the same, marked "prefix": true (DeepSeek, Mistral)
//   - "continue_final_message": vLLM's and SGLang's switch, which excludes
//     add_generation_prompt
func (e *Edit) Continue(text, how string) *Edit {
	msg := append([]byte(`{"role":"assistant","content":`), String(text)...)
	if how == "prefix" {
		msg = append(msg, `,"prefix":true`...)
	}
	e.AppendMessage(append(msg, '}'))
	if how == "continue_final_message" {
		e.Set("continue_final_message", []byte("true"))
		e.Set("add_generation_prompt", []byte("false"))
	}
	return e
}

// Int is the value of a top-level field that is an integer.
func (b *Body) Int(name string) (n int, ok bool) {
	raw, ok := b.Field(name)
	if !ok {
		return 0, false
	}
	return integer(raw)
}

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
	if !e.body.HasTool(name) {
		return e
	}
	choice := append([]byte(`{"type":"function","function":{"name":`), String(name)...)
	return e.Set("tool_choice", append(choice, '}', '}'))
}

// ForbidCalls asks for text. The definitions of the tools stay, so that a
// cached prompt does.
func (e *Edit) ForbidCalls() *Edit {
	if _, ok := e.body.Field("tools"); !ok {
		return e
	}
	return e.Set("tool_choice", []byte(`"none"`))
}
