package transcript

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// mender is what a format's reader knows of the pieces that a history is mended with.
type mender interface {
	// result is an element that answers a call.
	result(c ToolCall, text string) []byte
	// sign is an assistant's message whose calls all carry a mark in place of the
	// signature that Gemini wants back, and whether any lacked one.
	sign(element []byte, force bool) ([]byte, bool)
	// definitions are tools of these names that take any object.
	definitions(names []string) []byte
	// textOnly is a content of parts as one string; ok is false if there is
	// something besides text in it, or it is a string already.
	textOnly(content []byte) ([]byte, bool)
	// withoutMedia is a content with a text part in place of each other part.
	withoutMedia(content []byte, text string) ([]byte, bool)
	// choice demands a call of a tool.
	choice(t Tool) []byte
	// settle adds to an edit what its changes make necessary elsewhere.
	settle(e *Edit)
	// loseReasoning and loseIDs report whether that changes anything.
	loseReasoning(e *Edit, lose func(n int) bool) bool
	sealed(b *Body) (n int, ok bool) // elements of reasoning
	loseIDs(e *Edit) bool
	loseOwn(e *Edit) bool
	hasOwn(b *Body) bool
}

var _ mender = chat{}

// ResultMessage is a message of this body's format that answers a call of this kind.
func (b *Body) ResultMessage(c ToolCall, text string) []byte {
	return b.format.reader().result(c, text)
}

// SetResultID makes message i answer another call.
func (e *Edit) SetResultID(i int, id string) *Edit {
	if m, ok := e.at(i); ok {
		e.element(int(m.first)).set(e.body.format.reader().answeredField(e.body, int(m.first)), String(id))
	}
	return e
}

// LoseReasoning takes the reasoning of earlier turns out, where it stands in elements
// of its own, and what ties others to it: of the n-th, counted from 0, if lose says so
// (nil: of all). It reports whether there was any.
func (e *Edit) LoseReasoning(lose func(n int) bool) bool {
	return e.body.format.reader().loseReasoning(e, lose)
}

// SealedReasoning is how many elements of the history are reasoning, which only the
// account can read that was given it; ok is false where the format has no such elements.
func (b *Body) SealedReasoning() (n int, ok bool) { return b.format.reader().sealed(b) }

// OwnMark is in the ids of what the gateway itself answered, behind the kind and a "_":
// no server knows them.
const OwnMark = "rebound"

// HasOwn reports whether the history has something with an id of ours.
func (b *Body) HasOwn() bool { return b.format.reader().hasOwn(b) }

// LoseOwn takes ids of ours out, and what is nothing but such an id. It reports whether
// there were any.
func (e *Edit) LoseOwn() bool { return e.body.format.reader().loseOwn(e) }

// LoseIDs takes the ids out that a server gave to what it wrote, where nothing needs
// them. It reports whether there were any.
func (e *Edit) LoseIDs() bool { return e.body.format.reader().loseIDs(e) }

// SetRoleOf gives message i another role.
func (e *Edit) SetRoleOf(i int, role string) *Edit {
	return e.SetMessageField(i, "role", String(role))
}

// SignCalls gives the calls of message i the mark that Gemini's compatible
// endpoint takes in place of a lost signature
// (https://ai.google.dev/gemini-api/docs/thought-signatures); with force also
// in place of those that are there. It reports whether that changes anything.
func (e *Edit) SignCalls(i int, force bool) bool {
	m := e.body.Messages()[i]
	raw, ok := e.body.format.reader().sign(m.Raw(), force)
	if ok {
		e.ReplaceMessage(i, raw)
	}
	return ok
}

// OfferTools defines tools of these names, which take any object. The request
// must not offer any.
func (e *Edit) OfferTools(names []string) *Edit {
	r := e.body.format.reader()
	return e.Set(r.offer(), r.definitions(names))
}

// CompleteTools gives every function that has no schema of its parameters one that
// takes none. It reports whether any lacked it.
func (e *Edit) CompleteTools() bool {
	r := e.body.format.reader()
	list, ok := e.body.Field(r.offer())
	if !ok {
		return false
	}
	out, changed := []byte{'['}, false
	gjson.ParseBytes(list).ForEach(func(_, tool gjson.Result) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		raw, path := []byte(tool.Raw), "parameters"
		if tool.Get("function").IsObject() {
			path = "function.parameters"
		}
		if schema := tool.Get(path); tool.Get("type").Str == "function" && (!schema.IsObject() || len(schema.Map()) == 0) {
			if set, err := sjson.SetRawBytes(bytes.Clone(raw), path, []byte(`{"type":"object","properties":{}}`)); err == nil {
				raw, changed = set, true
			}
		}
		out = append(out, raw...)
		return true
	})
	if changed {
		e.Set(r.offer(), append(out, ']'))
	}
	return changed
}

// FlattenText makes the content of message i one string, if it is parts of text
// only. It reports whether that changes anything.
func (e *Edit) FlattenText(i int) bool {
	return e.content(i, func(raw []byte) ([]byte, bool) { return e.body.format.reader().textOnly(raw) })
}

// DropMedia puts a text in the place of each image and other attachment of
// message i. It reports whether there was any.
func (e *Edit) DropMedia(i int, text string) bool {
	return e.content(i, func(raw []byte) ([]byte, bool) { return e.body.format.reader().withoutMedia(raw, text) })
}

func (e *Edit) content(i int, change func([]byte) ([]byte, bool)) bool {
	changed := false
	e.each(i, func(n int) {
		if raw, ok := change(e.body.format.reader().content(e.body, n)); ok {
			e.setContent(n, raw)
			changed = true
		}
	})
	return changed
}

func (chat) settle(*Edit)                               {}
func (chat) loseReasoning(*Edit, func(n int) bool) bool { return false }
func (chat) loseIDs(*Edit) bool                         { return false }
func (chat) hasOwn(*Body) bool                          { return false }
func (chat) loseOwn(*Edit) bool                         { return false }
func (chat) sealed(*Body) (int, bool)                   { return 0, false }

func (chat) choice(t Tool) []byte {
	return append(append([]byte(`{"type":"function","function":{"name":`), String(t.Name)...), '}', '}')
}

func (chat) result(c ToolCall, text string) []byte {
	out := append([]byte(`{"role":"tool","tool_call_id":`), String(c.ID)...)
	return append(append(append(out, `,"content":`...), String(text)...), '}')
}

// signature is the value that Google documents for calls whose signature is lost.
const signature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

func (chat) sign(element []byte, force bool) ([]byte, bool) {
	list, _ := member(element, "tool_calls")
	out, changed := []byte{'['}, false
	for call := range elementsOf(list) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if _, has := member(call, "extra_content"); isObject(call) && (!has || force) {
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

func (chat) textOnly(content []byte) ([]byte, bool) {
	return textOnly(content, func(part []byte) bool { return partKind(part) == "text" })
}

// textOnly is the text of a list of parts as one string, if isText says so of each.
func textOnly(content []byte, isText func(part []byte) bool) ([]byte, bool) {
	if !isList(content) {
		return nil, false
	}
	var texts []string
	for part := range elementsOf(content) {
		if !isText(part) {
			return nil, false
		}
		if !isString(part) {
			part, _ = member(part, "text")
		}
		texts = append(texts, text(part))
	}
	return String(strings.Join(texts, "\n")), true
}

func (c chat) withoutMedia(content []byte, mark string) ([]byte, bool) {
	return withoutMedia(content, mark, func(part []byte) bool {
		switch partKind(part) {
		case "text", "refusal", "thinking", "redacted_thinking", "reasoning":
			return true
		}
		return false
	}, c.part)
}

// withoutMedia is a list of parts with a text in the place of each that keep does not
// want. What has no type is no attachment.
func withoutMedia(content []byte, mark string, keep func(part []byte) bool, write func(text string, mark []byte) []byte) ([]byte, bool) {
	out, changed := []byte{'['}, false
	for part := range elementsOf(content) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if kind := partKind(part); kind == "" || keep(part) {
			out = append(out, part...)
		} else {
			changed = true
			out = append(out, write("["+kind+" removed: "+mark+"]", nil)...)
		}
	}
	return append(out, ']'), changed
}
