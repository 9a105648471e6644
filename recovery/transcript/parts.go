package transcript

import (
	"bytes"
	"fmt"
)

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
	// contentField and answeredField name the fields of an element that content and answered read.
	contentField(b *Body, i int) string
	answeredField(b *Body, i int) string
	// message is an element of the history that says text.
	message(role, text string, mark []byte) []byte
}

// Shape tells what the message consists of.
func (m Message) Shape() Shape { return m.body.format.reader().shape(m) }

// SetText gives message i another text. A content that is a string stays one;
// of a list of parts the first text part gets the text and keeps its other
// fields, further text parts go, and parts that are not text stay if media is
// set. A cache mark on a part that goes moves to the first text part.
func (e *Edit) SetText(i int, text string, media bool) *Edit {
	m, ok := e.at(i)
	if !ok {
		return e
	}
	r, at := e.body.format.reader(), -1
	for n := int(m.first); n < int(m.first+m.count); n++ {
		if m.count > 1 && len(r.content(e.body, n)) == 0 {
			continue // no words: a call, or reasoning
		}
		if at >= 0 {
			e.element(n).remove() // the first has it all
			continue
		}
		at = n
	}
	if at < 0 { // it has none yet: they come at its end
		e.element(int(m.first+m.count) - 1).after(r.message(m.Role, text, nil))
		return e
	}
	raw, err := r.setText(r.content(e.body, at), text, media)
	if err != nil {
		e.fail("message %d: %w", i, err)
		return e
	}
	e.setContent(at, raw)
	return e
}

// setContent gives an element another content.
func (e *Edit) setContent(n int, raw []byte) {
	if e.body.raw[e.body.elements[n].start] != '{' { // nothing but a content
		e.element(n).replace(raw)
		return
	}
	e.element(n).set(e.body.format.reader().contentField(e.body, n), raw)
}

// TextMessage is a message of this body's format for Edit.InsertMessage. role is
// one of the Role constants for a user, an assistant or the system; mark is a
// cache mark, or nil.
func (b *Body) TextMessage(role, text string, mark []byte) []byte {
	return b.format.reader().message(role, text, mark)
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

func (chat) contentField(*Body, int) string  { return "content" }
func (chat) answeredField(*Body, int) string { return "tool_call_id" }

func (chat) shape(m Message) (s Shape) {
	element := m.body.element(int(m.first))
	if mark, ok := member(element, "cache_control"); ok && !isNull(mark) {
		s.Mark = clipped(mark)
	}
	for name, v := range fieldsOf(element) {
		switch string(name) {
		case "reasoning_content", "reasoning_details", "reasoning", "thinking", "thinking_blocks", "reasoning_opaque", "signature", "extra_content":
			s.Reasoning = s.Reasoning || filled(v)
		}
	}
	for call := range elementsOf(m.key(keyCalls)) {
		extra, _ := member(call, "extra_content")
		signature, _ := member(call, "thought_signature")
		s.Reasoning = s.Reasoning || filled(extra) || filled(signature)
	}
	content := m.key(keyContent)
	if isString(content) {
		s.Texts = 1
		return s
	}
	s.Parts = isList(content)
	for part := range elementsOf(content) {
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
	return setText(content, text, media, func(part []byte) bool { return partKind(part) == "text" }, c.part)
}

// setText is a content with another text. isText tells the parts that have text,
// and write makes one.
func setText(content []byte, text string, media bool, isText func([]byte) bool, write func(text string, mark []byte) []byte) ([]byte, error) {
	if len(content) == 0 || isNull(content) || isString(content) {
		return String(text), nil
	}
	if !isList(content) {
		return nil, fmt.Errorf("the content is neither a string nor a list")
	}
	var (
		parts [][]byte
		at    = -1   // of the text part that stays
		mark  []byte // of parts that go
	)
	for part := range elementsOf(content) {
		switch own, marked := member(part, "cache_control"); {
		case isText(part) && at < 0:
			at, parts = len(parts), append(parts, part)
		case !isText(part) && media:
			parts = append(parts, part)
		case marked && !isNull(own):
			mark = own
		}
	}
	if at < 0 {
		parts = append(parts, write(text, mark))
	} else if raw, err := withText(parts[at], text, mark); err == nil {
		parts[at] = raw
	} else {
		return nil, err
	}
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']'), nil
}

// withText is a part that has text with another, and with a mark (nil: none) if it has none.
func withText(part []byte, text string, mark []byte) ([]byte, error) {
	if isString(part) {
		return String(text), nil
	}
	changes := []change{{kind: changeSet, name: "text", raw: String(text)}}
	if own, ok := member(part, "cache_control"); mark != nil && (!ok || isNull(own)) {
		changes = append(changes, change{kind: changeSet, name: "cache_control", raw: mark})
	}
	return changedObject(part, changes...)
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
