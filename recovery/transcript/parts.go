package transcript

import (
	"bytes"
	"fmt"
	"strings"
)

// Shape describes a message besides its role, its text and its calls.
type Shape struct {
	Parts     bool   // the content is a list of parts, not a string
	Texts     int    // parts that are text; 1 for a string
	Media     int    // parts that are neither text nor reasoning: images, files, sound
	Fixed     bool   // the content is an object, such as a screenshot, which no text can replace
	Reasoning bool   // it has reasoning, or signatures of it, that a provider may want back unchanged
	Mark      []byte // the last raw cache mark on the message or its parts; nil if there is none
}

// Shape returns what the message consists of.
func (m Message) Shape() (s Shape) {
	r := m.body.format.reader()
	for i := m.first; i < m.first+m.count; i++ {
		e := m.body.entry(int(i))
		s.Reasoning = s.Reasoning || e.reasoning
		r.asides(m.body, int(i), func(a aside) bool {
			s.Reasoning = s.Reasoning || a.seal && filled(a.raw)
			if a.mark && !isNull(a.raw) {
				s.Mark = clipped(a.raw)
			}
			return true
		})
		if isString(e.content) {
			s.Texts++
			continue
		}
		s.Parts = s.Parts || len(e.content) > 0 && !isNull(e.content)
		s.Fixed = s.Fixed || isObject(e.content) && !m.body.isContentBlock(int(i))
		for raw := range partsOf(e.content) {
			p := r.part(raw)
			switch p.kind {
			case partText:
				s.Texts++
			case partReasoning:
				s.Reasoning = true
			case partKept:
			default:
				s.Media++
			}
			if p.mark != nil {
				s.Mark = clipped(p.mark)
			}
		}
	}
	return s
}

// SetText replaces the text of message i. A content that is a string stays one.
// In a list of parts, the first text part gets the text and keeps its other
// fields; SetText removes further text parts, and media parts unless media is set.
// A cache mark on a removed part moves to the first text part.
func (e *Editor) SetText(i int, text string, media bool) *Editor {
	m, ok := e.at(i)
	if !ok {
		return e
	}
	if e.body.isContentBlock(int(m.first)) {
		e.setBlockText(m, text, media)
		return e
	}
	at := -1
	for n := int(m.first); n < int(m.first+m.count); n++ {
		if m.count > 1 && len(e.body.entry(n).content) == 0 {
			continue // no content: a call or reasoning
		}
		if at >= 0 {
			e.element(n).remove() // the first content gets the whole text
			continue
		}
		at = n
	}
	if at < 0 { // the message has no content: add one at its end
		e.element(int(m.first+m.count) - 1).after(e.body.TextMessage(m.Role, text, nil))
		return e
	}
	raw, err := withTexts(e.body.format.reader(), e.body.entry(at).content, text, media)
	if err != nil {
		e.fail("message %d: %w", i, err)
		return e
	}
	e.setContent(at, raw)
	return e
}

// setBlockText is SetText for a message that consists of blocks of a user's message.
func (e *Editor) setBlockText(m Message, text string, media bool) {
	r, at := e.body.format.reader(), -1
	for n := int(m.first); n < int(m.first+m.count); n++ {
		switch p := r.part(e.body.element(n)); {
		case p.kind == partKept, p.kind == partReasoning, media && !p.plain:
		case p.plain && at < 0:
			at = n
			e.element(n).replace(withText(e.body.element(n), text, nil))
		default:
			e.element(n).remove()
		}
	}
	if at < 0 {
		e.element(int(m.first + m.count - 1)).after(r.textPart(text, nil))
	}
}

// setContent replaces the content of an element.
func (e *Editor) setContent(n int, raw []byte) {
	if e.body.isContentBlock(n) || e.body.raw[e.body.elements[n].start] != '{' { // the element itself is the content
		e.element(n).replace(raw)
		return
	}
	e.element(n).set(e.body.entry(n).contentField, raw)
}

// TextMessage returns a message in this body's format for Editor.InsertMessage. role is
// one of the Role constants for a user, an assistant or the system; mark is a
// cache mark, or nil.
func (b *Body) TextMessage(role, text string, mark []byte) []byte {
	return b.format.reader().message(role, text, mark)
}

// filled reports whether a value is neither null nor an empty string, list or object.
func filled(raw []byte) bool {
	if isList(raw) || isObject(raw) {
		return len(bytes.TrimLeft(raw[1:], " \t\r\n")) > 1
	}
	return len(raw) > 2 && !isNull(raw)
}

// withTexts returns a content with its text replaced; see SetText.
func withTexts(r reader, content []byte, text string, media bool) ([]byte, error) {
	if len(content) == 0 || isNull(content) || isString(content) {
		return String(text), nil
	}
	if !isList(content) {
		return nil, fmt.Errorf("the content is neither a string nor a list of parts")
	}
	var (
		parts [][]byte
		at    = -1   // index of the text part that stays
		mark  []byte // the last cache mark of removed parts
		print []byte // the last part with the output of a command
	)
	for raw := range elementsOf(content) {
		switch p := r.part(raw); {
		case p.kind == partKept, p.kind == partReasoning:
			parts = append(parts, raw)
		case p.printed:
			print = raw
		case p.plain && at < 0:
			at, parts = len(parts), append(parts, raw)
		case !p.plain && media:
			parts = append(parts, raw)
		case p.mark != nil:
			mark = p.mark
		}
	}
	switch {
	case print != nil: // one part with the new text, and how the last command ended
		parts = [][]byte{changedObject(print, setField("stdout", String(text)), setField("stderr", []byte(`""`)))}
	case at < 0:
		parts = append(parts, r.textPart(text, mark))
	default:
		parts[at] = withText(parts[at], text, mark)
	}
	return List(parts), nil
}

// withText returns a text part with another text, and with mark if it has no cache mark itself and mark is not nil.
func withText(part []byte, text string, mark []byte) []byte {
	if isString(part) {
		return String(text)
	}
	changes := []change{setField("text", String(text))}
	if own, ok := member(part, "cache_control"); mark != nil && (!ok || isNull(own)) {
		changes = append(changes, setField("cache_control", mark))
	}
	return changedObject(part, changes...)
}

// textOnly returns the text of a list of parts as one string, and false if any of them is not text.
func textOnly(r reader, content []byte) ([]byte, bool) {
	if !isList(content) {
		return nil, false
	}
	var texts []string
	for raw := range elementsOf(content) {
		p := r.part(raw)
		if !p.plain {
			return nil, false
		}
		texts = append(texts, text(p.texts[0]))
	}
	return String(strings.Join(texts, "\n")), true
}

// mediaPlaceholder returns the text part that replaces a media part; why is the reason for the reader.
func mediaPlaceholder(r reader, p part, why string) []byte {
	return r.textPart("["+string(p.wire)+" removed: "+why+"]", p.mark)
}

// withoutMedia returns a list of parts with a text in the place of each media part, and whether there was any.
func withoutMedia(r reader, content []byte, why string) ([]byte, bool) {
	var list [][]byte
	changed := false
	for raw := range elementsOf(content) {
		if p := r.part(raw); p.kind == partMedia {
			raw, changed = mediaPlaceholder(r, p, why), true
		}
		list = append(list, raw)
	}
	return List(list), changed
}
