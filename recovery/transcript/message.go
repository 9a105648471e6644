package transcript

import (
	"sync/atomic"
)

// Span is a range of bytes of a body.
type Span struct{ Start, End int }

// Message is one message of the history: an element of the list, or, where the
// format splits a turn of the model into several elements (reasoning, text, each
// call), all consecutive elements of that turn. It is a view: cheap to copy, valid
// as long as its body.
type Message struct {
	Role         string // one of the Role constants, or another role as on the wire; "" if there is none
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
	// Span is the position of Arguments in the body, for Editor.Replace; empty if
	// there are none. IDSpan is that of the id.
	Span, IDSpan Span

	kind string // the type of the call's item in the Responses API, which decides the type of its result; "custom" for a custom tool of chat completions; else ""
	said string // the decoded arguments, if the call is short; see callOf
}

// Text returns the arguments as the tool gets them: the content of a string, any other
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

// Typed reports whether the server itself defines the members of the arguments, so that none of them can be removed.
func (c ToolCall) Typed() bool { return callFields[c.kind].name != "" }

// Tool is a tool that the request offers.
type Tool struct {
	Type        string // "function" and others, as on the wire
	Name        string // "" for tools that have none
	Own         bool   // its calls have an item or block type of their own, so no call by name is one of them
	Description string
	Parameters  []byte // JSON Schema as it stands in the body; nil if there is none
	Raw         []byte // the whole definition
	// Span is the position of Parameters in the body, Strict that of the value of
	// "strict": true, for Editor.Replace; empty if there is none.
	Span, Strict Span
}

// Messages returns the history, in order. The caller must not change the slice: it is shared.
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

// isContentBlock reports whether element n is a block of a user's message and not a result: the block itself is the content.
func (b *Body) isContentBlock(n int) bool {
	return b.elements[n].split > 0 && b.elements[n].kind != blockResult
}

// beside reports whether element i and the one before it are blocks of one message, and neither is a result.
func (b *Body) beside(i int) bool {
	return b.isContentBlock(i) && b.elements[i].split == b.elements[i-1].split
}

// Tools returns the tools that the request offers, in order. The caller must not change
// the slice: it is shared.
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

// ToolList returns the raw list of tools, nil if there are none or the history adds
// some. Agents send the same list with each request: see Format.Tools.
func (b *Body) ToolList() []byte {
	if len(b.moreTools()) > 0 {
		return nil
	}
	return clipped(b.topTools())
}

// topTools returns the request's list of tools with the capacity of the whole body, nil if it is empty.
func (b *Body) topTools() []byte {
	f := b.find(b.format.layout().offer)
	if f == nil || emptyList(b.raw[f.val:f.valEnd]) {
		return nil
	}
	return b.raw[f.val:f.valEnd]
}

// moreTools returns the lists of tools in the history, without empty ones.
func (b *Body) moreTools() (lists [][]byte) {
	if b.settings().adds {
		return [][]byte{[]byte(`[{"type":"` + KindAdded + `"}]`)}
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

// emptyList reports whether a value is an empty list or no list.
func emptyList(raw []byte) bool {
	return !isList(raw) || !filled(raw)
}

// Tools reads a list of tools that ToolList returned. The result refers to the bytes
// of list, which must not change afterwards, and its spans are offsets in list.
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

// System returns the text of the instructions that come before the conversation:
// those outside the history, and the system and developer messages at its
// beginning, joined by newlines. It leaves later ones out: they are reminders.
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

// Beginning returns the raw instructions outside the history (nil if there are none) and
// the raw first n messages; it panics if there are fewer. If n covers the system messages at
// the beginning, equal bytes mean that AppendSystem returns the same text.
func (b *Body) Beginning(n int) (outside, history []byte) {
	outside = clipped(b.settings().instructions)
	if n == 0 {
		return outside, nil
	}
	return outside, clipped(b.raw[b.elements[0].start:b.Messages()[n-1].End])
}

// Instructions returns the text of the instructions outside the history, "" if there are none.
func (b *Body) Instructions() string {
	if raw := b.settings().instructions; !isList(raw) {
		return text(raw)
	}
	return string(b.appendInstructions(nil))
}

// Conversation returns the id of the stored conversation that the request belongs to, or "".
func (b *Body) Conversation() string { return b.settings().conversation }

// PairsAnywhere reports whether a result may be anywhere behind its call, so that only
// ids pair them. In other formats, results directly follow the message with the call.
func (b *Body) PairsAnywhere() bool { return b.format.layout().anywhere }

// UserTurns counts the user's messages. With agents that call tools in plain text,
// these include the results of tools.
func (b *Body) UserTurns() int {
	n := 0
	for _, m := range b.Messages() {
		if m.Role == RoleUser {
			n++
		}
	}
	return n
}

// LastUser returns the last message of the user.
func (b *Body) LastUser() (m Message, ok bool) {
	list := b.Messages()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role == RoleUser {
			return list[i], true
		}
	}
	return Message{}, false
}

// Elements returns the indexes of the message's first and last element in the list on the wire.
func (m Message) Elements() (first, last int) {
	return int(m.body.elements[m.first].wire), int(m.body.elements[m.first+m.count-1].wire)
}

// Raw returns the message's bytes. Between several elements there are commas.
func (m Message) Raw() []byte { return m.body.raw[m.Start:m.End:m.End] }

// Field returns the raw value of one of the message's own fields, from the first
// element that has it.
func (m Message) Field(name string) (raw []byte, ok bool) {
	for i := m.first; i < m.first+m.count && !ok; i++ {
		raw, ok = member(m.body.element(int(i)), name)
	}
	return raw, ok
}

// Name returns the message's "name": that of the speaker or, in a result, of the tool; "" if there is none.
func (m Message) Name() string {
	if m.count > 1 || m.body.elements[m.first].split > 0 {
		return ""
	}
	return stringField(m.Raw(), "name")
}

// Content returns the position of the message's content, for Editor.Replace; ok is false
// if the message has no content, null or several contents.
func (m Message) Content() (at Span, ok bool) {
	raw, ok := m.content()
	if !ok || len(raw) == 0 || isNull(raw) {
		return Span{}, false
	}
	return m.body.span(raw), true
}

// Contents calls yield with each raw content of the message except null: a string, a
// list of parts, or another value that the client sent.
func (m Message) Contents(yield func(raw []byte) bool) {
	for i := m.first; i < m.first+m.count; i++ {
		if raw := m.body.entry(int(i)).content; len(raw) > 0 && !isNull(raw) && !yield(clipped(raw)) {
			return
		}
	}
}

// Asides calls yield with the values that a model reads besides contents and calls, such
// as reasoning. Only the readable strings in them count.
func (m Message) Asides(yield func(raw []byte) bool) {
	r := m.body.format.reader()
	words := func(a aside) bool { return !a.words || isNull(a.raw) || yield(clipped(a.raw)) }
	for i := m.first; i < m.first+m.count && r.asides(m.body, int(i), words); i++ {
	}
}

// content returns the message's only content; ok is false if there are several.
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

// Text returns the text of the content, which may be a string or parts. It joins
// text parts by newlines and leaves out other parts. For an absent or null content
// it returns "".
func (m Message) Text() string {
	if raw, ok := m.content(); ok && isString(raw) {
		return text(raw)
	}
	return string(m.AppendText(nil))
}

// AppendText is Text into a buffer.
func (m Message) AppendText(dst []byte) []byte {
	r, from := m.body.format.reader(), len(dst)
	bare := m.body.isContentBlock(int(m.first))
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

// appendPart appends the texts of one part; from is where the texts before it begin in dst.
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

// AppendMedia appends a fingerprint of each part that is not text (images, files,
// sound): its type, its size, and at most 256 bytes of its beginning and end. Cache
// marks on a part do not change it.
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

// ToolCalls returns the calls of the message, in order. The caller must not change the
// slice: it is shared.
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
	kept.Store(&list) // concurrent readers store equal lists
	return list
}

// ToolCallID returns the id of the call that the message answers, or "".
func (m Message) ToolCallID() string { return text(m.answered()) }

// AppendToolCallID is ToolCallID into a buffer.
func (m Message) AppendToolCallID(dst []byte) []byte { return appendText(dst, m.answered()) }

func (m Message) answered() []byte { return m.body.entry(int(m.first)).answers }

// element returns the bytes of an element, with the capacity of the whole body, from
// which span computes positions.
func (b *Body) element(i int) []byte { return b.raw[b.elements[i].start:b.elements[i].end] }

// key returns the value of an indexed field, nil if there is none; also with the
// capacity of the whole body.
func (b *Body) key(i int, k key) []byte {
	at := b.elements[i].keys[k]
	if at.end == 0 {
		return nil
	}
	return b.raw[at.start:at.end]
}

// span returns the position of a part of the body that was sliced without limiting its capacity.
func (b *Body) span(part []byte) Span { return spanIn(b.raw, part) }

func spanIn(whole, part []byte) Span {
	at := cap(whole) - cap(part)
	return Span{at, at + len(part)}
}

// clipped keeps a caller's append from writing into the body.
func clipped(raw []byte) []byte { return raw[:len(raw):len(raw)] }
