package transcript

import (
	"bytes"
	"sync/atomic"
)

// Span is a range of bytes of a body.
type Span struct{ Start, End int }

// Message is one message of the history: an element of the list, or, where the
// format tells what a model does in several elements (its reasoning, its words, each
// call), all of them in a row: one turn of the model, which stays whole. It is a
// view: cheap to copy, valid as long as its body.
type Message struct {
	Role         string // neutral: one of the Role constants, or what the wire says; "" if it says nothing
	Index        int    // position in the history
	Start, End   int    // offsets in the body
	body         *Body
	first, count int32 // its elements
}

// ToolCall is a call that an assistant message made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the raw JSON value as it stands in the body: usually a string
	// that holds JSON. Text decodes it.
	Arguments []byte
	// Span is where Arguments stands in the body, for Edit.Replace; empty if
	// there are none. IDSpan is the same for the id.
	Span, IDSpan Span

	kind string // what a result of it is, where the format has several kinds; else ""
	said string // Text, if it is short
}

// Text is the arguments as the tool gets them: a string's content, any other
// value as it is.
func (c ToolCall) Text() string {
	if c.said != "" {
		return c.said
	}
	if isString(c.Arguments) {
		return text(c.Arguments)
	}
	return string(c.Arguments)
}

// Tool is a tool that the request offers.
type Tool struct {
	Type        string // "function" and others, as on the wire
	Name        string // "" for tools that have none
	Own         bool   // its calls are of a kind of their own: no call by name is one of them
	Description string
	Parameters  []byte // JSON Schema as it stands in the body; nil if there is none
	Raw         []byte // the whole definition
	// Span is where Parameters stands in the body, Strict where its being strict
	// does, for Edit.Replace; empty if there are none.
	Span, Strict Span
}

// Messages is the history, in order. The slice is shared and must not be changed.
func (b *Body) Messages() []Message {
	b.messagesOnce.Do(func() {
		grouped := b.format.layout().items
		b.messages = make([]Message, 0, len(b.elements))
		for i := range b.elements {
			e, role := &b.elements[i], b.entry(i).role
			last := len(b.messages) - 1
			if last >= 0 && b.messages[last].Role == role && (grouped && role == RoleAssistant || i > 0 && b.beside(i)) {
				b.messages[last].End = int(e.end)
				b.messages[last].count++
				continue
			}
			b.messages = append(b.messages, Message{role, len(b.messages), int(e.start), int(e.end), b, int32(i), 1})
		}
		b.calls = make([]atomic.Pointer[[]ToolCall], len(b.messages))
	})
	return b.messages
}

// bare reports whether element n is a block that stands for what a user says: it is its own content.
func (b *Body) bare(n int) bool {
	return b.elements[n].split > 0 && b.elements[n].kind != blockResult
}

// beside reports whether element i and the one before it are blocks of one message, and no results.
func (b *Body) beside(i int) bool {
	return b.bare(i) && b.elements[i].split == b.elements[i-1].split
}

// Tools is what the request offers the model, in order. The slice is shared
// and must not be changed.
func (b *Body) Tools() []Tool {
	b.toolsOnce.Do(func() {
		r := b.format.reader()
		b.tools = r.tools(b.raw, b.topTools())
		for _, list := range b.moreTools() {
			b.tools = append(b.tools, r.tools(b.raw, list)...)
		}
	})
	return b.tools
}

// HasTools reports whether the request offers any tools. It costs less than Tools.
func (b *Body) HasTools() bool {
	return b.topTools() != nil || len(b.moreTools()) > 0
}

// ToolList is the list of the tools as it stands in the body, nil if there are none,
// or some elsewhere. Agents send the same with each request: see Format.Tools.
func (b *Body) ToolList() []byte {
	if len(b.moreTools()) > 0 {
		return nil
	}
	return clipped(b.topTools())
}

// topTools is the list of tools with the capacity of the whole body, nil if it is empty.
func (b *Body) topTools() []byte {
	f := b.find(b.format.layout().offer)
	if f == nil || emptyList(b.raw[f.val:f.valEnd]) {
		return nil
	}
	return b.raw[f.val:f.valEnd]
}

// moreTools are the lists of tools that stand in the history, none of them empty.
func (b *Body) moreTools() (lists [][]byte) {
	if b.settings().adds {
		return [][]byte{[]byte(`[{"type":"tool_addition"}]`)} // whatever their names are
	}
	if !b.format.layout().items {
		return nil
	}
	for i := range b.elements {
		if list := b.entry(i).tools; !emptyList(list) {
			lists = append(lists, list)
		}
	}
	return lists
}

// emptyList reports whether a value is an empty list, or none.
func emptyList(raw []byte) bool {
	return len(raw) == 0 || raw[0] != '[' || len(bytes.TrimLeft(raw[1:], " \t\r\n")) == 1
}

// Tools reads a list of tools that a Body's ToolList was. What it returns is part
// of list, which must not be changed any more, and its spans are offsets in list.
func (f Format) Tools(list []byte) []Tool {
	list = clipped(list)
	return f.reader().tools(list, list)
}

// HasTool reports whether the request offers a tool of that name.
func (b *Body) HasTool(name string) bool {
	_, ok := b.tool(name)
	return ok
}

func (b *Body) tool(name string) (Tool, bool) {
	for _, t := range b.Tools() {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// System is the text of the instructions that come before the conversation:
// those outside the history, and the system and developer messages at its
// beginning, joined by newlines. Later ones are reminders and do not count.
func (b *Body) System() []byte { return b.AppendSystem(nil) }

// AppendSystem is System into a buffer.
func (b *Body) AppendSystem(dst []byte) []byte {
	from := len(dst)
	dst = b.appendInstructions(dst)
	for _, m := range b.Messages() {
		if m.Role != RoleSystem && m.Role != RoleDeveloper {
			break
		}
		if len(dst) > from {
			dst = append(dst, '\n')
		}
		dst = m.AppendText(dst)
	}
	return dst
}

// Beginning is the bytes that the first n messages, of which there must be so
// many, and AppendSystem are read from, where n goes beyond the instructions: those
// that stand outside the history (nil if none do), and the history.
func (b *Body) Beginning(n int) (outside, history []byte) {
	outside = clipped(b.settings().instructions)
	if n == 0 {
		return outside, nil
	}
	return outside, clipped(b.raw[b.elements[0].start:b.Messages()[n-1].End])
}

// Outside is the instructions that stand outside the history, "" if there are none.
func (b *Body) Outside() string {
	if raw := b.settings().instructions; !isList(raw) {
		return text(raw)
	}
	return string(b.appendInstructions(nil))
}

// Conversation is the name under which the server keeps the conversation that the request
// belongs to, "" if it does not.
func (b *Body) Conversation() string { return b.settings().conversation }

// PairsAnywhere reports whether a result may stand anywhere behind its call, so that
// ids alone pair them. Elsewhere results stand right behind the message with the call.
func (b *Body) PairsAnywhere() bool { return b.format.layout().anywhere }

// UserTurns counts the user's messages. In text protocols these include
// what tools answered.
func (b *Body) UserTurns() int {
	n := 0
	for _, m := range b.Messages() {
		if m.Role == RoleUser {
			n++
		}
	}
	return n
}

// LastUser is the last message of the user.
func (b *Body) LastUser() (m Message, ok bool) {
	list := b.Messages()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == RoleUser {
			return list[i], true
		}
	}
	return Message{}, false
}

// Elements are the positions of the message's first and last element in the list on the wire.
func (m Message) Elements() (first, last int) {
	return int(m.body.elements[m.first].wire), int(m.body.elements[m.first+m.count-1].wire)
}

// Raw is the message's bytes. Several elements have commas between them.
func (m Message) Raw() []byte { return m.body.raw[m.Start:m.End:m.End] }

// Field is the value of a field of the message's own, as it stands in the body: of
// several elements, the first that has it.
func (m Message) Field(name string) (raw []byte, ok bool) {
	for i := m.first; i < m.first+m.count && !ok; i++ {
		raw, ok = member(m.body.element(int(i)), name)
	}
	return raw, ok
}

// Name is the name that the message gives its speaker, or a result its tool; "" if none.
func (m Message) Name() string {
	if m.count > 1 || m.body.elements[m.first].split > 0 {
		return ""
	}
	return stringField(m.Raw(), "name")
}

// Content is where the message's content stands, for Edit.Replace; ok is false
// if it has none or null, or several.
func (m Message) Content() (at Span, ok bool) {
	raw, ok := m.content()
	if !ok || len(raw) == 0 || isNull(raw) {
		return Span{}, false
	}
	return m.body.span(raw), true
}

// Contents calls yield with each content that the message has and that is not null,
// as it stands in the body: a string, a list of parts, or what the client sent.
func (m Message) Contents(yield func(raw []byte) bool) {
	for i := m.first; i < m.first+m.count; i++ {
		if raw := m.body.entry(int(i)).content; len(raw) > 0 && !isNull(raw) && !yield(clipped(raw)) {
			return
		}
	}
}

// Asides calls yield with what the message has besides its contents and calls that a
// model reads, such as reasoning: values in which the readable strings count.
func (m Message) Asides(yield func(raw []byte) bool) {
	r := m.body.format.reader()
	words := func(a aside) bool { return !a.words || isNull(a.raw) || yield(clipped(a.raw)) }
	for i := m.first; i < m.first+m.count && r.asides(m.body, int(i), words); i++ {
	}
}

// content is the message's only content; ok is false if there are several.
func (m Message) content() (raw []byte, ok bool) {
	raw = m.body.entry(int(m.first)).content
	for i := m.first + 1; i < m.first+m.count; i++ {
		if more := m.body.entry(int(i)).content; len(more) > 0 {
			if len(raw) > 0 {
				return nil, false
			}
			raw = more
		}
	}
	return raw, true
}

// Text is the text of the content, whether it came as a string or as parts;
// text parts are joined by newlines, other parts left out. Absent and null
// content is "".
func (m Message) Text() string {
	if raw, ok := m.content(); ok && isString(raw) {
		return text(raw)
	}
	return string(m.AppendText(nil))
}

// AppendText is Text into a buffer.
func (m Message) AppendText(dst []byte) []byte {
	r, from := m.body.format.reader(), len(dst)
	bare := m.body.bare(int(m.first))
	for raw := range m.Contents {
		if len(dst) > from {
			dst = append(dst, '\n')
		}
		if bare {
			dst = appendPart(dst, len(dst), r.part(raw))
		} else {
			dst = appendTexts(dst, r, raw)
		}
	}
	return dst
}

// appendTexts appends the texts of a content.
func appendTexts(dst []byte, r reader, content []byte) []byte {
	if isString(content) {
		return appendDecoded(dst, content)
	}
	from := len(dst)
	for raw := range elementsOf(content) {
		dst = appendPart(dst, from, r.part(raw))
	}
	return dst
}

// appendPart appends the texts of one part behind others, which begin at from.
func appendPart(dst []byte, from int, p part) []byte {
	for _, text := range p.texts {
		if !isString(text) || len(text) == 2 {
			continue
		}
		if len(dst) > from {
			dst = append(dst, '\n')
		}
		dst = appendDecoded(dst, text)
	}
	return append(dst, p.end...)
}

// AppendMedia appends marks of what the content has besides text (images,
// files, sound): type, size, beginning and end of each, enough to tell them
// apart and bounded in size. Cache marks on a part do not matter.
func (m Message) AppendMedia(dst []byte) []byte {
	const ends = 256
	r := m.body.format.reader()
	for content := range m.Contents {
		for raw := range partsOf(content) {
			p := r.part(raw)
			if p.payload == nil {
				continue
			}
			dst = append(append(dst, p.wire...), ' ')
			dst = appendInt(dst, len(p.payload))
			dst = append(dst, p.payload[:min(ends, len(p.payload))]...)
			dst = append(dst, p.payload[max(0, len(p.payload)-ends):]...)
		}
	}
	return dst
}

// ToolCalls is the calls that the message makes, in order. The slice is shared
// and must not be changed.
func (m Message) ToolCalls() []ToolCall {
	calling := false
	for i := m.first; i < m.first+m.count && !calling; i++ {
		calling = m.body.entry(int(i)).calls
	}
	if !calling {
		return nil
	}
	kept := &m.body.calls[m.Index]
	if list := kept.Load(); list != nil {
		return *list
	}
	var list []ToolCall
	for i := m.first; i < m.first+m.count; i++ {
		list = m.body.format.reader().appendCalls(list, m.body, int(i))
	}
	kept.Store(&list) // who reads them at the same time reads the same
	return list
}

// ToolCallID is the id of the call that the message answers, or "".
func (m Message) ToolCallID() string { return text(m.answered()) }

// AppendToolCallID is ToolCallID into a buffer.
func (m Message) AppendToolCallID(dst []byte) []byte { return appendText(dst, m.answered()) }

func (m Message) answered() []byte { return m.body.entry(int(m.first)).answers }

// element is the bytes of an element, with the capacity of the whole body, from
// which span reads positions.
func (b *Body) element(i int) []byte { return b.raw[b.elements[i].start:b.elements[i].end] }

// key is the value of an indexed field, nil where there is none; with the
// capacity of the whole body, too.
func (b *Body) key(i int, k key) []byte {
	at := b.elements[i].keys[k]
	if at.end == 0 {
		return nil
	}
	return b.raw[at.start:at.end]
}

// span locates a part of the body that was sliced without limiting its capacity.
func (b *Body) span(part []byte) Span { return spanIn(b.raw, part) }

func spanIn(whole, part []byte) Span {
	at := cap(whole) - cap(part)
	return Span{at, at + len(part)}
}

// clipped keeps a caller's append from writing into the body.
func clipped(raw []byte) []byte { return raw[:len(raw):len(raw)] }
