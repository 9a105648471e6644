package transcript

import (
	"bytes"

	"github.com/tidwall/sjson"
)

// mender is what a format's reader knows of the pieces that a history is mended with.
type mender interface {
	// result is a message that answers a call.
	result(id, text string) []byte
	resultIDField() string
	// sign is an assistant's message whose calls all carry a mark in place of the
	// signature that Gemini wants back, and whether any lacked one.
	sign(element []byte, force bool) ([]byte, bool)
	toolsField() string
	// definitions are tools of these names that take any object.
	definitions(names []string) []byte
	// textOnly is a content of parts as one string; ok is false if there is
	// something besides text in it, or it is a string already.
	textOnly(content []byte) ([]byte, bool)
	// withoutMedia is a content with a text part in place of each other part.
	withoutMedia(content []byte, text string) ([]byte, bool)
}

func (f Format) mender() mender { return chat{} }

var _ mender = chat{}

// ResultMessage is a message of this body's format that answers a call.
func (b *Body) ResultMessage(id, text string) []byte { return b.format.mender().result(id, text) }

// SetResultID makes message i answer another call.
func (e *Edit) SetResultID(i int, id string) *Edit {
	return e.SetMessageField(i, e.body.format.mender().resultIDField(), String(id))
}

// SetRoleOf gives message i another role.
func (e *Edit) SetRoleOf(i int, role string) *Edit {
	return e.SetMessageField(i, e.body.format.reader().keys()[keyRole], String(role))
}

// SignCalls gives the calls of message i the mark that Gemini's compatible
// endpoint takes in place of a lost signature
// (https://ai.google.dev/gemini-api/docs/thought-signatures); with force also
// in place of those that are there. It reports whether that changes anything.
func (e *Edit) SignCalls(i int, force bool) bool {
	m := e.body.Messages()[i]
	raw, ok := e.body.format.mender().sign(m.Raw(), force)
	if ok {
		e.ReplaceMessage(i, raw)
	}
	return ok
}

// OfferTools defines tools of these names, which take any object. The request
// must not offer any.
func (e *Edit) OfferTools(names []string) *Edit {
	m := e.body.format.mender()
	return e.Set(m.toolsField(), m.definitions(names))
}

// FlattenText makes the content of message i one string, if it is parts of text
// only. It reports whether that changes anything.
func (e *Edit) FlattenText(i int) bool {
	return e.content(i, func(raw []byte) ([]byte, bool) { return e.body.format.mender().textOnly(raw) })
}

// DropMedia puts a text in the place of each image and other attachment of
// message i. It reports whether there was any.
func (e *Edit) DropMedia(i int, text string) bool {
	return e.content(i, func(raw []byte) ([]byte, bool) { return e.body.format.mender().withoutMedia(raw, text) })
}

func (e *Edit) content(i int, change func([]byte) ([]byte, bool)) bool {
	m := e.body.Messages()[i]
	raw, ok := change(m.key(keyContent))
	if ok {
		e.SetMessageField(i, e.body.format.parts().contentField(), raw)
	}
	return ok
}

func (chat) resultIDField() string { return "tool_call_id" }
func (chat) toolsField() string    { return "tools" }

func (chat) result(id, text string) []byte {
	out := append([]byte(`{"role":"tool","tool_call_id":`), String(id)...)
	return append(append(append(out, `,"content":`...), String(text)...), '}')
}

// signature is the value that Google documents for calls whose signature is lost.
const signature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

func (chat) sign(element []byte, force bool) ([]byte, bool) {
	list, ok := member(element, "tool_calls")
	if !ok {
		return nil, false
	}
	var s scanner
	w, ok := opened(&s, list, '[')
	if !ok {
		return nil, false
	}
	out, changed := []byte{'['}, false
	for w.step() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		call := w.value()
		if _, has := member(call, "extra_content"); len(call) > 0 && call[0] == '{' && (!has || force) {
			// A small fragment, which was validated; copied, since the body must not change.
			if signed, err := sjson.SetRawBytes(bytes.Clone(call), "extra_content", []byte(signature)); err == nil {
				call, changed = signed, true
			}
		}
		out = append(out, call...)
	}
	if !changed {
		return nil, false
	}
	whole, err := changedObject(element, change{kind: changeSet, name: "tool_calls", raw: append(out, ']')})
	return whole, err == nil
}

func (chat) definitions(names []string) []byte {
	out := []byte{'['}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, `{"type":"function","function":{"name":`...), String(name)...)
		out = append(out, `,"parameters":{"type":"object","properties":{}}}}`...)
	}
	return append(out, ']')
}

func (c chat) textOnly(content []byte) ([]byte, bool) {
	var s scanner
	w, ok := opened(&s, content, '[')
	if !ok {
		return nil, false
	}
	var out []byte
	for n := 0; w.step(); n++ {
		if partKind(w.value()) != "text" {
			return nil, false
		}
		part := w.value()
		if !isString(part) {
			part, _ = member(part, "text")
		}
		if n > 0 {
			out = append(out, '\n')
		}
		out = append(out, text(part)...)
	}
	return String(string(out)), true
}

func (chat) withoutMedia(content []byte, mark string) ([]byte, bool) {
	var s scanner
	w, ok := opened(&s, content, '[')
	if !ok {
		return nil, false
	}
	out, changed := []byte{'['}, false
	for w.step() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		switch kind := partKind(w.value()); kind {
		case "text", "refusal", "thinking", "redacted_thinking", "reasoning":
			out = append(out, w.value()...)
		default:
			changed = true
			out = append(append(out, `{"type":"text","text":`...), String("["+kind+" removed: "+mark+"]")...)
			out = append(out, '}')
		}
	}
	return append(out, ']'), changed
}
