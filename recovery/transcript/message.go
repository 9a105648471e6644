package transcript

import "sync/atomic"

// Span is a range of bytes of a body.
type Span struct{ Start, End int }

// Message is one element of the history. It is a view: cheap to copy, valid as
// long as its body.
type Message struct {
	Role       string // neutral: one of the Role constants, or what the wire says; "" if it says nothing
	Index      int    // position in the history
	Start, End int    // offsets in the body
	body       *Body
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
		r := b.format.reader()
		if n := len(b.elements); n <= shortHistory {
			b.messages, b.calls = b.room.messages[:n:n], b.room.calls[:n]
		} else {
			b.messages, b.calls = make([]Message, n), make([]atomic.Pointer[calls], n)
		}
		for i, e := range b.elements {
			role := r.speaker(b.key(i, keyRole), b.raw[e.start:e.end])
			b.messages[i] = Message{role, i, int(e.start), int(e.end), b}
		}
	})
	return b.messages
}

// Tools is what the request offers the model, in order. The slice is shared
// and must not be changed.
func (b *Body) Tools() []Tool {
	b.toolsOnce.Do(func() { b.tools = b.format.reader().tools(b.raw, b.format.reader().toolList(b)) })
	return b.tools
}

// HasTools reports whether the request offers any tools. It costs less than Tools.
func (b *Body) HasTools() bool { return b.ToolList() != nil }

// ToolList is the list of the tools as it stands in the body, nil if there are
// none. Agents send the same with each request: see Format.Tools.
func (b *Body) ToolList() []byte { return clipped(b.format.reader().toolList(b)) }

// Tools reads a list of tools that a Body's ToolList was. What it returns is part
// of list, which must not be changed any more, and its spans are offsets in list.
func (f Format) Tools(list []byte) []Tool {
	list = clipped(list)
	return f.reader().tools(list, list)
}

// HasTool reports whether the request offers a tool of that name.
func (b *Body) HasTool(name string) bool {
	for _, t := range b.Tools() {
		if t.Name == name {
			return true
		}
	}
	return false
}

// System is the text of the instructions that come before the conversation:
// those outside the history, and the system and developer messages at its
// beginning, joined by newlines. Later ones are reminders and do not count.
func (b *Body) System() []byte { return b.AppendSystem(nil) }

// AppendSystem is System into a buffer.
func (b *Body) AppendSystem(dst []byte) []byte {
	from := len(dst)
	dst = b.format.reader().instructions(dst, b)
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
// many, and AppendSystem are read from, where n goes beyond the instructions. In
// Chat Completions those stand in the history.
func (b *Body) Beginning(n int) []byte {
	if n == 0 {
		return nil
	}
	return clipped(b.raw[b.elements[0].start:b.elements[n-1].end])
}

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

// Raw is the message's bytes.
func (m Message) Raw() []byte { return m.body.raw[m.Start:m.End:m.End] }

// Field is the value of one of the message's own fields, as it stands in the body.
func (m Message) Field(name string) (raw []byte, ok bool) { return member(m.Raw(), name) }

// Content is where the message's content stands, for Edit.Replace; ok is false
// if it has none or null.
func (m Message) Content() (at Span, ok bool) {
	raw := m.key(keyContent)
	if len(raw) == 0 || isNull(raw) {
		return Span{}, false
	}
	return m.body.span(raw), true
}

// Text is the text of the content, whether it came as a string or as parts;
// text parts are joined by newlines, other parts left out. Absent and null
// content is "".
func (m Message) Text() string {
	if raw := m.key(keyContent); isString(raw) {
		return text(raw)
	}
	return string(m.AppendText(nil))
}

// AppendText is Text into a buffer.
func (m Message) AppendText(dst []byte) []byte {
	return m.body.format.reader().appendText(dst, m.key(keyContent))
}

// AppendMedia appends marks of what the content has besides text (images,
// files, sound): type, size, beginning and end of each, enough to tell them
// apart and bounded in size. Cache marks on a part do not matter.
func (m Message) AppendMedia(dst []byte) []byte {
	return m.body.format.reader().appendMedia(dst, m.key(keyContent))
}

// ToolCalls is the calls that the message makes, in order. The slice is shared
// and must not be changed.
func (m Message) ToolCalls() []ToolCall {
	if m.key(keyCalls) == nil && m.key(keyCall) == nil {
		return nil
	}
	kept := &m.body.calls[m.Index]
	if c := kept.Load(); c != nil {
		return c.list
	}
	c := m.body.newCalls()
	c.list = m.body.format.reader().appendCalls(c.one[:0], m)
	kept.Store(c) // who reads them at the same time reads the same
	return c.list
}

// calls is the calls of a message, with room for one, which most make.
type calls struct {
	list []ToolCall
	one  [1]ToolCall
}

// newCalls is room for the calls of a message: the body's own for the first that are
// asked for.
func (b *Body) newCalls() *calls {
	if n := b.asked.Add(1); int(n) <= len(b.room.called) {
		return &b.room.called[n-1]
	}
	return new(calls)
}

// ToolCallID is the id of the call that the message answers, or "".
func (m Message) ToolCallID() string { return text(m.key(keyCallID)) }

// AppendToolCallID is ToolCallID into a buffer.
func (m Message) AppendToolCallID(dst []byte) []byte { return appendText(dst, m.key(keyCallID)) }

// bytes is Raw with the capacity of the whole body, from which span reads positions.
func (m Message) bytes() []byte { return m.body.raw[m.Start:m.End] }

// key is the value of an indexed field, nil where there is none; with the
// capacity of the whole body, too.
func (m Message) key(k key) []byte { return m.body.key(m.Index, k) }

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
