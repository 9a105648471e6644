package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// ResultMessage is a message of this body's format that answers a call of this kind.
func (b *Body) ResultMessage(c ToolCall, text string) []byte {
	return b.format.reader().result(c, text)
}

// SetResultID makes message i answer another call.
func (e *Edit) SetResultID(i int, id string) *Edit {
	if m, ok := e.at(i); ok {
		e.element(int(m.first)).set(e.body.entry(int(m.first)).answersField, String(id))
	}
	return e
}

// OwnMark is in the ids of what the gateway itself answered, behind the kind and a "_":
// no server knows them.
const OwnMark = "rebound"

// own reports whether the entry has an id of ours.
func (e entry) own() bool {
	_, id, _ := bytes.Cut(e.id, []byte("_"))
	return bytes.HasPrefix(id, []byte(OwnMark))
}

// items calls yield with the elements, where each may have an id of the server's.
func (b *Body) items(yield func(i int, e entry) bool) {
	if !b.format.layout().items {
		return
	}
	for i := range b.elements {
		if !yield(i, b.entry(i)) {
			return
		}
	}
}

// SealedReasoning is how many elements of the history are reasoning, which only the
// account can read that was given it; ok is false where the format has no such elements.
func (b *Body) SealedReasoning() (n int, ok bool) {
	if b.format.layout().blocks {
		return b.thoughts(), true
	}
	for _, e := range b.items {
		if e.reasoning {
			n++
		}
	}
	return n, b.format.layout().items
}

// LoseReasoning takes the reasoning of earlier turns out, where it stands in elements
// of its own, and what ties others to it: of the n-th, counted from 0, if lose says so
// (nil: of all). It reports whether there was any.
func (e *Edit) LoseReasoning(lose func(n int) bool) (changed bool) {
	if e.body.format.layout().blocks {
		return e.loseThoughts(func(n int, _ bool) bool { return lose == nil || lose(n) })
	}
	n := 0
	if lose == nil {
		changed = e.LoseIDs() // by which what it led to asks for it
	}
	for i, item := range e.body.items {
		if !item.reasoning {
			continue
		}
		if lose == nil || lose(n) {
			e.element(i).remove()
			changed = true
		}
		n++
	}
	return changed // the ids of what some of it led to go when the edit settles
}

// HasOwn reports whether the history has something with an id of ours.
func (b *Body) HasOwn() bool {
	for _, e := range b.items {
		if e.own() {
			return true
		}
	}
	return false
}

// LoseOwn takes ids of ours out, and what is nothing but such an id. It reports whether
// there were any.
func (e *Edit) LoseOwn() (changed bool) {
	for i, item := range e.body.items {
		switch {
		case !item.own():
			continue
		case item.bare:
			e.element(i).remove()
		default:
			e.element(i).unset("id")
		}
		changed = true
	}
	return changed
}

// LoseIDs takes the ids out that a server gave to what it wrote, where nothing needs
// them. It reports whether there were any.
func (e *Edit) LoseIDs() (changed bool) {
	for i, item := range e.body.items {
		if item.id != nil && !item.bare {
			e.element(i).unset("id")
			changed = true
		}
	}
	return changed
}

// keepReasoning keeps the order that servers demand: behind reasoning stands the item that it led to,
// and an item with an id stands behind the reasoning that it came with.
func (e *Edit) keepReasoning() {
	if len(e.history) == 0 || !e.body.format.layout().items {
		return
	}
	b := e.body
	gone := func(i int) bool { h := e.history[i]; return h != nil && (h.removed || h.whole != nil) }
	led, cut := false, false // what a reasoning led to is there, or was
	for i := len(b.elements) - 1; i >= 0; i-- {
		switch item := b.entry(i); {
		case item.role != RoleAssistant:
			led, cut = false, false
		case gone(i):
			cut = true
		case !item.reasoning:
			led = true
		case cut && !led:
			e.element(i).remove()
		}
	}
	lost := false
	for i, item := range b.items {
		switch {
		case item.role == RoleTool:
		case item.role != RoleAssistant:
			lost = false
		case item.reasoning:
			lost = gone(i)
		case lost && !gone(i) && item.id != nil && !item.bare:
			e.element(i).unset("id")
		}
	}
}

// SetRoleOf gives message i another role.
func (e *Edit) SetRoleOf(i int, role string) *Edit {
	if m, ok := e.at(i); ok && e.body.elements[m.first].split > 0 {
		return e // a block is what its message is
	}
	return e.SetMessageField(i, "role", String(role))
}

// SignCalls gives the calls of message i the mark that Gemini's compatible
// endpoint of Chat Completions takes in place of a lost signature
// (https://ai.google.dev/gemini-api/docs/thought-signatures); with force also
// in place of those that are there. It reports whether that changes anything.
func (e *Edit) SignCalls(i int, force bool) bool {
	if e.body.format != Chat {
		return false
	}
	raw, ok := signed(e.body.Messages()[i].Raw(), force)
	if ok {
		e.ReplaceMessage(i, raw)
	}
	return ok
}

// OfferTools defines tools of these names, which take any object. The request
// must not offer any.
func (e *Edit) OfferTools(names []string) *Edit {
	list := []byte{'[', ']'}
	for _, name := range names {
		list = withPart(list, e.body.format.reader().tool(name))
	}
	return e.Set(e.body.format.layout().offer, list)
}

// CompleteTools gives every function that has no schema of its parameters one that
// takes none. It reports whether any lacked it.
func (e *Edit) CompleteTools() bool {
	list, ok := e.body.Field(e.body.format.layout().offer)
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
		e.Set(e.body.format.layout().offer, append(out, ']'))
	}
	return changed
}

// FlattenText makes the content of message i one string, if it is parts of text
// only. It reports whether that changes anything.
func (e *Edit) FlattenText(i int) bool {
	return e.content(i, func(raw []byte) ([]byte, bool) { return textOnly(e.body.format.reader(), raw) })
}

// DropMedia puts a text in the place of each image and other attachment of
// message i. It reports whether there was any.
func (e *Edit) DropMedia(i int, text string) bool {
	return e.content(i, func(raw []byte) ([]byte, bool) { return withoutMedia(e.body.format.reader(), raw, text) })
}

func (e *Edit) content(i int, change func([]byte) ([]byte, bool)) bool {
	changed := false
	e.each(i, func(n int) {
		if raw, ok := change(e.body.entry(n).content); ok {
			e.setContent(n, raw)
			changed = true
		}
	})
	return changed
}

// signature is the value that Google documents for calls whose signature is lost.
const signature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// signed is an assistant's message whose calls all carry a mark in place of a signature,
// and whether any lacked one.
func signed(element []byte, force bool) ([]byte, bool) {
	list, _ := member(element, "tool_calls")
	out, changed := []byte{'['}, false
	for call := range elementsOf(list) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if _, has := member(call, "extra_content"); isObject(call) && (!has || force) {
			// A small fragment, which was validated; copied, since the body must not change.
			if mended, err := sjson.SetRawBytes(bytes.Clone(call), "extra_content", []byte(signature)); err == nil {
				call, changed = mended, true
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

// LoseEmptyTexts takes parts of text that say nothing out of the contents of message i, where
// something else is left. It reports whether there was any.
func (e *Edit) LoseEmptyTexts(i int) (changed bool) {
	r := e.body.format.reader()
	m, ok := e.at(i)
	empty := func(raw []byte) bool {
		p := r.part(raw)
		return p.plain && isString(p.texts[0]) && len(strings.TrimSpace(text(p.texts[0]))) == 0
	}
	for n := int(m.first); ok && n < int(m.first+m.count); n++ {
		content := e.body.entry(n).content
		if e.body.bare(n) {
			if empty(content) {
				e.element(n).remove()
				changed = true
			}
			continue
		}
		var left [][]byte
		all := 0
		for raw := range elementsOf(content) {
			if all++; !empty(raw) {
				left = append(left, raw)
			}
		}
		if len(left) > 0 && len(left) < all {
			e.setContent(n, append(append([]byte{'['}, bytes.Join(left, []byte{','})...), ']'))
			changed = true
		}
	}
	return changed
}

// MendArguments gives a call arguments that say nothing where its own are not what the format
// demands: JSON, or an object. It reports whether they were not.
func (e *Edit) MendArguments(c ToolCall) bool {
	if c.Span.End == c.Span.Start {
		return false
	}
	if e.body.format.layout().blocks {
		if isObject(c.Arguments) {
			return false
		}
		e.Replace(c.Span, []byte("{}"))
		return true
	}
	if json.Valid([]byte(c.Text())) {
		return false
	}
	e.Replace(c.Span, String("{}"))
	return true
}
