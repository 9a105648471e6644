package transcript

import "fmt"

// Shape is what a message consists of besides its role, its text and its calls.
type Shape struct {
	Parts     bool   // the content is a list of parts, not a string
	Texts     int    // parts that are text; 1 for a string
	Media     int    // parts that are not: images, files, sound
	Reasoning bool   // it carries reasoning, or signatures of it, that a provider may want back unchanged
	Mark      []byte // the last cache mark on the message or its parts, as it stands in the body; nil if there is none
}

// parter is what a format's reader knows about the parts of a message. What it
// is given was validated.
type parter interface {
	shape(m Message) Shape
	// setText is the content with another text; see Edit.SetText.
	setText(content []byte, text string, media bool) ([]byte, error)
	contentField() string
	// message is an element of the history that says text.
	message(role, text string, mark []byte) []byte
}

func (f Format) parts() parter { return chat{} }

// Shape tells what the message consists of.
func (m Message) Shape() Shape { return m.body.format.parts().shape(m) }

// SetText gives message i another text. A content that is a string stays one;
// of a list of parts the first text part gets the text and keeps its other
// fields, further text parts go, and parts that are not text stay if media is
// set. A cache mark on a part that goes moves to the first text part.
func (e *Edit) SetText(i int, text string, media bool) *Edit {
	if i < 0 || i >= len(e.body.elements) {
		e.fail("no message %d in a history of %d", i, len(e.body.elements))
		return e
	}
	p := e.body.format.parts()
	raw, err := p.setText(e.body.key(i, keyContent), text, media)
	if err != nil {
		e.fail("message %d: %w", i, err)
		return e
	}
	return e.SetMessageField(i, p.contentField(), raw)
}

// TextMessage is a message of this body's format for Edit.InsertMessage. role is
// one of the Role constants for a user, an assistant or the system; mark is a
// cache mark, or nil.
func (b *Body) TextMessage(role, text string, mark []byte) []byte {
	return b.format.parts().message(role, text, mark)
}

// changedObject is a JSON object with changes to its fields.
func changedObject(raw []byte, changes ...change) ([]byte, error) {
	slots, open, err := members(raw, 0)
	if err != nil {
		return nil, err
	}
	n := len(slots)
	if slots, err = resolve(slots, changes); err != nil {
		return nil, err
	}
	return spliced(raw, emit(nil, slots, n, open, true))
}

// Chat Completions, with what the providers behind it add: cache marks as
// Anthropic and OpenRouter have them, reasoning as DeepSeek, OpenRouter and
// LiteLLM send it, signatures as Gemini puts them on calls.
var _ parter = chat{}

func (chat) contentField() string { return "content" }

func (chat) shape(m Message) (s Shape) {
	element := m.bytes()
	if mark, ok := member(element, "cache_control"); ok && !isNull(mark) {
		s.Mark = clipped(mark)
	}
	var sc scanner
	for w, ok := opened(&sc, element, '{'); ok && w.step(); {
		switch string(w.name) {
		case "reasoning_content", "reasoning_details", "reasoning", "thinking", "thinking_blocks", "reasoning_opaque", "signature", "extra_content":
			s.Reasoning = s.Reasoning || filled(w.value())
		}
	}
	if calls := m.key(keyCalls); calls != nil {
		var sc scanner
		for w, ok := opened(&sc, calls, '['); ok && w.step(); {
			extra, _ := member(w.value(), "extra_content")
			signature, _ := member(w.value(), "thought_signature")
			s.Reasoning = s.Reasoning || filled(extra) || filled(signature)
		}
	}
	content := m.key(keyContent)
	if isString(content) {
		s.Texts = 1
		return s
	}
	var parts scanner
	w, ok := opened(&parts, content, '[')
	if !ok {
		return s
	}
	s.Parts = true
	for w.step() {
		part := w.value()
		switch kind := partKind(part); kind {
		case "text":
			s.Texts++
		case "thinking", "redacted_thinking", "reasoning":
			s.Reasoning = true
		default:
			s.Media++
		}
		if mark, ok := member(part, "cache_control"); ok && !isNull(mark) {
			s.Mark = clipped(mark)
		}
	}
	return s
}

// partKind is the type of a content part; "text" for a bare string.
func partKind(part []byte) string {
	if isString(part) {
		return "text"
	}
	return stringField(part, "type")
}

// filled reports whether a value says anything.
func filled(raw []byte) bool {
	return len(raw) > 2 && !isNull(raw)
}

func (c chat) setText(content []byte, text string, media bool) ([]byte, error) {
	if len(content) == 0 || isNull(content) || isString(content) {
		return String(text), nil
	}
	var s scanner
	w, ok := opened(&s, content, '[')
	if !ok {
		return nil, fmt.Errorf("the content is neither a string nor a list")
	}
	var (
		out   = []byte{'['}
		first []byte // the text part that stays
		at    = -1   // where it goes
		mark  []byte // of parts that go
	)
	add := func(raw []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	for w.step() {
		part := w.value()
		switch own, marked := member(part, "cache_control"); {
		case partKind(part) == "text" && at < 0:
			first, at = part, len(out)
		case partKind(part) != "text" && media:
			add(part)
		case marked && !isNull(own):
			mark = own
		}
	}
	switch {
	case isString(first):
		first = String(text)
	case first == nil:
		first = c.part(text, mark)
	default:
		changes := []change{{kind: changeSet, name: "text", raw: String(text)}}
		if own, ok := member(first, "cache_control"); mark != nil && (!ok || isNull(own)) {
			changes = append(changes, change{kind: changeSet, name: "cache_control", raw: mark})
		}
		var err error
		if first, err = changedObject(first, changes...); err != nil {
			return nil, err
		}
	}
	if at < 0 {
		at = len(out)
	}
	head, tail := out[:at], out[at:]
	whole := append(make([]byte, 0, len(out)+len(first)+2), head...)
	if len(head) > 1 {
		whole = append(whole, ',')
	}
	whole = append(whole, first...)
	if len(tail) > 0 && tail[0] != ',' {
		whole = append(whole, ',')
	}
	return append(append(whole, tail...), ']'), nil
}

// part is a text part.
func (chat) part(text string, mark []byte) []byte {
	raw := AppendString([]byte(`{"type":"text","text":`), text)
	if mark != nil {
		raw = append(append(raw, `,"cache_control":`...), mark...)
	}
	return append(raw, '}')
}

func (c chat) message(role, text string, mark []byte) []byte {
	raw := append(AppendString([]byte(`{"role":`), role), `,"content":`...)
	if mark == nil {
		return append(AppendString(raw, text), '}')
	}
	return append(append(append(raw, '['), c.part(text, mark)...), `]}`...)
}
