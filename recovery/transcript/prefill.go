package transcript

import (
	"math/bits"
	"slices"
	"strconv"
)

// Continue asks for the continuation of an answer that begins with text, in
// one of the ways that servers offer:
//
//   - "assistant": a trailing assistant message (Anthropic, OpenRouter, Mistral)
//   - "prefix": the same, marked "prefix": true (DeepSeek, Mistral)
//   - "continue_final_message": vLLM's and SGLang's switch, which excludes
//     add_generation_prompt
//
// It works only in formats that Prefills. If the client itself begins the answer, Continue appends text to
// that message, because a server continues the last message.
func (e *Editor) Continue(text, how string) *Editor {
	if !e.extendPrefill(text, how) {
		e.appendPrefill(text, how)
	}
	if how == "continue_final_message" {
		e.Set("continue_final_message", []byte("true"))
		e.Set("add_generation_prompt", []byte("false"))
	}
	return e
}

// Interrupt adds the beginning of an interrupted answer to the history, and behind it
// a user's message, said, that explains the interruption to the model.
func (e *Editor) Interrupt(text, said string) *Editor {
	if !e.extendPrefill(text, "") {
		e.AppendMessage(e.body.TextMessage(RoleAssistant, text, nil))
	}
	return e.AppendMessage(e.body.note(said))
}

// Sampled reports whether the model may answer the same request in other words: it
// returns false if the request sets a temperature of 0 or a seed.
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

// extendPrefill appends text to the client's prefill; it returns false if there is none.
func (e *Editor) extendPrefill(text, how string) bool {
	begun, ok := e.body.Prefill()
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

// appendPrefill appends a message of the model with text, for a server to continue.
func (e *Editor) appendPrefill(text, how string) {
	msg := e.body.TextMessage(RoleAssistant, text, nil)
	if how == "prefix" {
		msg = append(msg[:len(msg)-1], `,"prefix":true}`...)
	}
	e.AppendMessage(msg)
}

// Prefill returns the prefill: the last message of the history if it is the model's and has
// no calls. The client wrote it as the beginning of an answer that the model shall continue.
func (b *Body) Prefill() (m Message, ok bool) {
	list := b.Messages()
	if len(list) == 0 || !b.format.layout().prefills {
		return Message{}, false
	}
	m = list[len(list)-1]
	return m, m.Role == RoleAssistant && len(m.ToolCalls()) == 0
}

// SetInt sets a top-level field to an integer.
func (e *Editor) SetInt(field string, n int) *Editor {
	return e.Set(field, strconv.AppendInt(nil, int64(n), 10))
}

// leastBudget is the smallest budget for thinking that Anthropic's servers accept, in tokens.
const leastBudget = 1024

// LowerOutput sets the field that limits the output. A budget for thinking that is not below the new limit, which
// servers refuse, is lowered with it: to a power of two that leaves a quarter for the answer, so that similar limits
// give the same budget, since a change of it costs the prompt cache.
func (e *Editor) LowerOutput(field string, n int) *Editor {
	for _, at := range e.body.format.layout().budgets {
		whole, _ := e.body.Field(at[0])
		raw, _ := member(whole, at[1])
		if budget, ok := integer(raw); !ok || budget < n || n*3/4 < leastBudget {
			continue
		}
		lower := appendInt(nil, 1<<(bits.Len(uint(n*3/4))-1))
		e.Set(at[0], changedObject(whole, setField(at[1], lower)))
	}
	return e.SetInt(field, n)
}

// HasRole reports whether a message of the history has this role on the wire.
func (b *Body) HasRole(role string) bool {
	return slices.ContainsFunc(b.Messages(), func(m Message) bool { return m.Role == role })
}

// ForceCall demands a call of one function, if the request offers it.
func (e *Editor) ForceCall(name string) *Editor {
	t, ok := e.body.tool(name)
	if !ok || e.body.format == Messages && e.body.Reasoning() { // it refuses this with thinking
		return e
	}
	return e.Set("tool_choice", e.body.format.reader().choice(&t))
}

// ForbidCalls forbids tool calls. The definitions of the tools stay, so that the
// prompt cache still matches.
func (e *Editor) ForbidCalls() *Editor {
	if _, ok := e.body.Field(e.body.format.layout().offer); !ok && !e.body.HasTools() {
		return e
	}
	return e.Set("tool_choice", e.body.format.reader().choice(nil))
}
