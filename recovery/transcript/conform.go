package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/sjson"
)

// ResultMessage returns a message in this body's format that answers a call, nil if text cannot answer it.
func (b *Body) ResultMessage(c ToolCall, text string) []byte {
	return b.format.reader().result(c, text)
}

// SetResultID makes message i answer another call.
func (e *Editor) SetResultID(i int, id string) *Editor {
	if m, ok := e.at(i); ok {
		e.element(int(m.first)).set(e.body.entry(int(m.first)).answersField, String(id))
	}
	return e
}

// OwnMark marks the ids of items that the gateway itself made, behind the type and a "_".
// No server knows these ids.
const OwnMark = "rebound"

// own reports whether the gateway made the entry's id.
func (e entry) own() bool {
	_, id, _ := bytes.Cut(e.id, []byte("_"))
	return bytes.HasPrefix(id, []byte(OwnMark))
}

// items calls yield with the elements, if the format has items, which servers give ids.
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

// SealedReasoning counts the items or blocks of the history that are reasoning, which only the
// account that received it can read; ok is false if the format has none.
func (b *Body) SealedReasoning() (n int, ok bool) {
	if b.format.SignsReasoning() {
		return b.thoughts(), true
	}
	for _, e := range b.items {
		if e.reasoning {
			n++
		}
	}
	return n, b.format.layout().items
}

// DropReasoning removes the items or blocks of reasoning for which lose returns true, nil
// for all; n counts them from 0. It also removes the ids that tie other items to them. It
// reports whether it changed anything.
func (e *Editor) DropReasoning(lose func(n int) bool) (changed bool) {
	if e.body.format.SignsReasoning() {
		return e.dropThinking(func(n int, _ bool) bool { return lose == nil || lose(n) })
	}
	n := 0
	if lose == nil {
		changed = e.DropIDs() // with an id, a server demands the reasoning before the item
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
	return changed // keepReasoning removes the ids that depend on removed reasoning
}

// HasOwn reports whether the history has an item with an id that the gateway made.
func (b *Body) HasOwn() bool {
	for _, e := range b.items {
		if e.own() {
			return true
		}
	}
	return false
}

// DropOwnIDs removes ids that the gateway made, and items that are meaningless without them. It
// reports whether there were any.
func (e *Editor) DropOwnIDs() (changed bool) {
	for i, item := range e.body.items {
		switch {
		case !item.own():
			continue
		case item.idOnly:
			e.element(i).remove()
		default:
			e.element(i).unset("id")
		}
		changed = true
	}
	return changed
}

// DropIDs removes the ids that a server gave to its items, except where the item needs its
// id. It reports whether there were any.
func (e *Editor) DropIDs() (changed bool) {
	for i, item := range e.body.items {
		if item.id != nil && !item.idOnly {
			e.element(i).unset("id")
			changed = true
		}
	}
	return changed
}

// keepReasoning enforces the order that servers demand: the item that reasoning led to follows it,
// and an item with an id follows the reasoning that it came with. It removes reasoning or ids otherwise.
func (e *Editor) keepReasoning() {
	if len(e.history) == 0 || !e.body.format.layout().items {
		return
	}
	b := e.body
	gone := func(i int) bool { h := e.history[i]; return h != nil && (h.removed || h.whole != nil) }
	led, cut := false, false // an item behind in the same turn remains, or was removed
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
		case lost && !gone(i) && item.id != nil && !item.idOnly:
			e.element(i).unset("id")
		}
	}
}

// SetRoleOf sets the role of message i.
func (e *Editor) SetRoleOf(i int, role string) *Editor {
	if m, ok := e.at(i); ok && e.body.elements[m.first].split > 0 {
		return e // a block has the role of its message
	}
	return e.SetMessageField(i, "role", String(role))
}

// SignCalls sets on the calls of message i the value that Gemini's endpoint of
// Chat Completions accepts in place of a lost signature
// (https://ai.google.dev/gemini-api/docs/thought-signatures); with force it also
// replaces existing signatures. It reports whether that changes anything.
func (e *Editor) SignCalls(i int, force bool) bool {
	if e.body.format != Chat {
		return false
	}
	raw, ok := signed(e.body.Messages()[i].Raw(), force)
	if ok {
		e.ReplaceMessage(i, raw)
	}
	return ok
}

// OfferTools adds tools with these names, which take any object. The request
// must not offer any tools yet.
func (e *Editor) OfferTools(names []string) *Editor {
	list := make([][]byte, len(names))
	for i, name := range names {
		list[i] = e.body.format.reader().tool(name)
	}
	return e.Set(e.body.format.layout().offer, List(list))
}

// CompleteTools adds an empty parameter schema to every function without one. It
// reports whether there was any.
func (e *Editor) CompleteTools() (changed bool) {
	offered, _ := e.body.Field(e.body.format.layout().offer)
	var list [][]byte
	for tool := range elementsOf(offered) {
		if whole, ok := withParameters(tool, e.body.format); ok {
			tool, changed = whole, true
		}
		list = append(list, tool)
	}
	if changed {
		e.Set(e.body.format.layout().offer, List(list))
	}
	return changed
}

// withParameters returns the definition of a function with an empty schema, and false if it has a schema or is another kind of tool.
func withParameters(tool []byte, f Format) ([]byte, bool) {
	kind := stringField(tool, "type")
	if f == Messages {
		if schema, _ := member(tool, "input_schema"); isObject(schema) || kind != "" && kind != "custom" {
			return tool, false
		}
		whole, err := sjson.SetRawBytes(bytes.Clone(tool), "input_schema", anyObject)
		return whole, err == nil
	}
	path, function := "parameters", tool
	if kind != KindFunction {
		return tool, false
	}
	if inner, _ := member(tool, "function"); isObject(inner) {
		path, function = "function.parameters", inner
	}
	if schema, _ := member(function, "parameters"); isObject(schema) && filled(schema) {
		return tool, false
	}
	whole, err := sjson.SetRawBytes(bytes.Clone(tool), path, anyObject) // a copy, because the body must not change
	return whole, err == nil
}

// FlattenText turns the content of message i into one string, if it consists of
// text parts only. It reports whether that changes anything.
func (e *Editor) FlattenText(i int) bool {
	return e.content(i, func(raw []byte, _ bool) ([]byte, bool) { return textOnly(e.body.format.reader(), raw) })
}

// DropMedia replaces each image and other attachment of message i by a text.
// It reports whether there was any.
func (e *Editor) DropMedia(i int, text string) bool {
	r := e.body.format.reader()
	return e.content(i, func(raw []byte, block bool) ([]byte, bool) {
		if !block {
			return withoutMedia(r, raw, text)
		}
		p := r.part(raw)
		return mediaPlaceholder(r, p, text), p.kind == partMedia
	})
}

// content replaces the contents of message i for which change returns true; block is set for a content that is one block.
func (e *Editor) content(i int, change func(raw []byte, block bool) ([]byte, bool)) (changed bool) {
	e.each(i, func(n int) {
		if raw, ok := change(e.body.entry(n).content, e.body.isContentBlock(n)); ok {
			e.setContent(n, raw)
			changed = true
		}
	})
	return changed
}

// signature is the value that Google documents for calls whose signature is lost.
const signature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// signed returns an assistant's message with the replacement signature on all calls that
// lack one, with force on all calls; false if nothing changes.
func signed(element []byte, force bool) (whole []byte, changed bool) {
	calls, _ := member(element, "tool_calls")
	var list [][]byte
	for call := range elementsOf(calls) {
		if _, has := member(call, "extra_content"); isObject(call) && (!has || force) {
			call, changed = changedObject(call, setField("extra_content", []byte(signature))), true
		}
		list = append(list, call)
	}
	if !changed {
		return nil, false
	}
	return changedObject(element, setField("tool_calls", List(list))), true
}

// DropEmptyTexts removes blank text parts from the contents of message i, unless a content would
// become empty. It reports whether there were any.
func (e *Editor) DropEmptyTexts(i int) (changed bool) {
	r := e.body.format.reader()
	m, ok := e.at(i)
	empty := func(raw []byte) bool {
		p := r.part(raw)
		return p.plain && isString(p.texts[0]) && len(strings.TrimSpace(text(p.texts[0]))) == 0
	}
	for n := int(m.first); ok && n < int(m.first+m.count); n++ {
		content := e.body.entry(n).content
		if e.body.isContentBlock(n) {
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
			e.setContent(n, List(left))
			changed = true
		}
	}
	return changed
}

// EmptyArguments replaces the arguments of a call by {} if they are not valid for the format:
// an object in the Messages API, elsewhere JSON. The input of a custom tool may be any text. It reports whether it replaced them.
func (e *Editor) EmptyArguments(c ToolCall) bool {
	if c.Span.End == c.Span.Start || strings.HasPrefix(c.kind, "custom") {
		return false
	}
	if e.body.format == Messages {
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

// SplitCalls gives each call of message i of a chat completion but the first a message of its own, with its result behind it. Each call must
// have one result, directly behind the message. It reports whether it changed anything.
func (e *Editor) SplitCalls(i int) bool {
	list := e.body.Messages()
	calls := list[i].ToolCalls()
	behind := i + 1 + len(calls)
	if e.body.format != Chat || len(calls) < 2 || behind > len(list) || behind < len(list) && list[behind].Role == RoleTool {
		return false
	}
	results := make(map[string]int, len(calls))
	for j := i + 1; j < behind; j++ {
		if list[j].Role == RoleTool {
			results[list[j].ToolCallID()] = j
		}
	}
	raw, _ := list[i].Field("tool_calls")
	var each [][]byte
	for call := range elementsOf(raw) {
		each = append(each, call)
	}
	for _, c := range calls {
		if _, ok := results[c.ID]; !ok || len(results) != len(calls) || len(each) != len(calls) {
			return false
		}
	}
	e.SetMessageField(i, "tool_calls", List(each[:1]))
	for k, c := range calls[1:] {
		alone := append([]byte(`{"role":"assistant","content":null,"tool_calls":`), List(each[k+1:k+2])...)
		result := list[results[c.ID]].Raw()
		e.RemoveMessage(results[c.ID])
		for _, raw := range [][]byte{append(alone, '}'), result} {
			if behind < len(list) {
				e.InsertMessage(behind, raw)
			} else {
				e.AppendMessage(raw)
			}
		}
	}
	return true
}
