package stream

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// messagesEncoder writes the events of a message. Clients append blocks to a list, so indexes must be
// consecutive: each new block gets the index after the client's last one. Text continues in the block
// in which it was cut. Thinking of a second attempt is written only if the client has no signed
// thinking, because a signature is valid for the text of its own block only.
type messagesEncoder struct {
	out     []byte
	follows bool // the client has the beginning of another attempt's answer
	lost    bool // the client's content is unknown

	id      string        // of the message that the client has, as JSON
	next    int           // index of the next block
	open    int           // the block that is open, -1 for none
	kind    block         // its type
	thought bool          // the client has signed thinking, or text
	place   map[int]int   // index at the client of each block of this answer, -1 if omitted
	kinds   map[int]block // types of this answer's blocks
	began   bool
}

func (Messages) encoder(s *Sink) encoder {
	m := &messagesEncoder{open: -1, place: map[int]int{}, kinds: map[int]block{}}
	if s == nil {
		return m
	}
	frames, _, _, lost := s.shown()
	m.follows, m.lost = true, lost
	known := new(Known)
	eachEvent(frames, func(ev *Event) { m.record(ev, Messages{}.Decode(ev, known)) })
	return m
}

// record records an event that the client has.
func (m *messagesEncoder) record(ev *Event, d *Delta) {
	switch it := &d.item; it.event {
	case eventCreated:
		m.id = strings.Clone(gjson.GetBytes(ev.Data, "message.id").Raw)
	case eventAdded:
		m.lost = m.lost || it.index != m.next
		m.open, m.kind, m.next = it.index, blockOf(itemKind(it.raw)), m.next+1
		m.thought = m.thought || m.kind == blockText || m.kind == blockThinking && d.Kind == KindReasoning
	case eventPiece:
		m.thought = m.thought || d.reasons // the recorded pieces contain only signatures
	case eventDone:
		m.open = -1
	}
}

func (m *messagesEncoder) event(out []byte, ev *Event, d *Delta, e *edit) (_ []byte, ok bool) {
	it := &d.item
	m.out, ok = out, true
	switch {
	case m.lost:
		return out, false
	case !ev.HasData, d.Kind == KindDone:
		m.out = append(m.out, ev.Raw...)
	case it.event == eventCreated:
		if ok = !m.follows || m.id != ""; !m.follows {
			m.out = append(m.out, ev.Raw...)
		}
	case it.event == eventEnd:
		m.write(e.before)
		m.last(ev, e)
	case it.event == eventAdded:
		m.begin(ev, it, d, e)
	case it.index < 0:
		m.out = append(m.out, ev.Raw...)
	default:
		m.inside(ev, d, e)
	}
	return m.out, ok
}

// begin writes the start of a block, unless the client does not get it.
func (m *messagesEncoder) begin(ev *Event, it *item, d *Delta, e *edit) {
	kind := blockOf(itemKind(it.raw))
	m.kinds[it.index] = kind
	if !m.follows && !m.began {
		m.next, m.began = it.index, true
	}
	switch {
	case kind == blockText && e.only, kind == blockThinking && m.follows && (e.only || m.thought):
		m.place[it.index] = -1
		return
	case kind == blockText && (m.follows || e.text != nil):
		m.place[it.index] = -1 // the block starts with its first text
		if text, ok := m.textOf(d, e); ok {
			m.write(e.before + text)
		}
		return
	case kind == blockCall && e.recall:
		if c := e.replacement(); c == nil || !c.same() {
			if m.place[it.index] = -1; c != nil {
				m.call(c)
			}
			return
		}
	}
	m.write(e.before)
	m.close()
	m.place[it.index] = m.next
	m.put(ev, m.next)
	m.open, m.kind, m.next = m.next, kind, m.next+1
}

// inside writes a piece or the stop of a block.
func (m *messagesEncoder) inside(ev *Event, d *Delta, e *edit) {
	at, began := m.place[d.item.index]
	if !began && m.follows {
		return
	}
	if !began { // it started before the stretch that is changed
		at, m.open = d.item.index, d.item.index
		m.place[at], m.next, m.began = at, max(m.next, at+1), true
		if m.kind = blockOther; d.Kind == KindText || d.ends {
			m.kind = blockText
		}
		m.kinds[at] = m.kind
	}
	kind := m.kinds[d.item.index]
	switch text, ok := m.textOf(d, e); {
	case kind == blockText && ok && !e.only:
		m.write(e.before + text)
	case kind == blockText && d.item.event == eventDone && at < 0:
		if m.write(e.before); m.open >= 0 && m.kind == blockText {
			m.close()
		}
	case at >= 0:
		m.put(ev, at)
		if d.item.event == eventDone {
			m.open = -1
		}
	}
}

// textOf returns the text to write for an event with text.
func (m *messagesEncoder) textOf(d *Delta, e *edit) (text string, ok bool) {
	if d.texts == nil || !m.follows && e.text == nil {
		return "", false
	}
	if e.text == nil {
		return textOf(d.texts), true
	}
	text = *e.text
	e.said()
	return text, true
}

// write writes text, in a new block unless a text block is open.
func (m *messagesEncoder) write(text string) {
	if text == "" {
		return
	}
	if m.open < 0 || m.kind != blockText {
		m.start(blockText, transcript.Object("type", "text", "text", ""))
	}
	m.say("content_block_delta", "index", m.open, "delta", transcript.Object("type", "text_delta", "text", text))
}

// call writes a complete call.
func (m *messagesEncoder) call(c *call) {
	m.start(blockCall, transcript.Object("type", "tool_use", "id", c.ID, "name", c.Name, "input", []byte("{}")))
	m.say("content_block_delta", "index", m.open, "delta", transcript.Object("type", "input_json_delta", "partial_json", c.Arguments))
	m.close()
}

// start starts a block.
func (m *messagesEncoder) start(kind block, raw []byte) {
	m.close()
	m.say("content_block_start", "index", m.next, "content_block", raw)
	m.open, m.kind, m.next = m.next, kind, m.next+1
}

// close stops the open block.
func (m *messagesEncoder) close() {
	if m.open >= 0 {
		m.say("content_block_stop", "index", m.open)
		m.open = -1
	}
}

// last writes the remaining text and calls, and the reason why the message ended.
func (m *messagesEncoder) last(ev *Event, e *edit) {
	if e.text != nil && !e.only {
		m.write(*e.text)
		e.said()
	}
	for _, c := range e.calls {
		if c.original == nil {
			m.call(c)
		}
	}
	m.close()
	var list []transcript.Splice
	if u := e.usage; u != nil {
		list = changes(ev.Data, "usage.output_tokens", u.Output, "usage.input_tokens", max(0, u.Input-u.CacheRead-u.CacheWrite))
	}
	switch {
	case e.unfinish:
		list = append(list, changes(ev.Data, "delta.stop_reason", []byte("null"))...)
	case e.finish != recovery.FinishNone && gjson.GetBytes(ev.Data, "delta.stop_reason").Str != "":
		list = append(list, changes(ev.Data, "delta.stop_reason", stopReason(e.finish))...)
	}
	m.change(ev, list)
}

// put writes an event with another index.
func (m *messagesEncoder) put(ev *Event, index int) { m.change(ev, changes(ev.Data, "index", index)) }

func (m *messagesEncoder) change(ev *Event, list []transcript.Splice) {
	if data := spliced(ev.Data, list); string(data) != string(ev.Data) {
		m.out = appendFrame(m.out, string(ev.Name), data)
		return
	}
	m.out = append(m.out, ev.Raw...)
}

// say writes an event with a type and fields.
func (m *messagesEncoder) say(kind string, fields ...any) {
	m.out = appendFrame(m.out, kind, transcript.Object(append([]any{"type", kind}, fields...)...))
}

func (*messagesEncoder) whole(body []byte, e *edit) []transcript.Splice {
	var blocks [][]byte
	said := e.text == nil
	gjson.GetBytes(body, "content").ForEach(func(_, v gjson.Result) bool {
		raw := []byte(v.Raw)
		switch blockOf(v.Get("type").Str) {
		case blockText:
			if !said {
				if said = true; *e.text == "" {
					return true
				}
				raw = with(raw, "text", *e.text)
			}
		case blockCall:
			c := e.replacement()
			if c == nil {
				return true
			}
			if !c.same() {
				raw = with(raw, "id", c.ID, "name", c.Name, "input", c.input())
			}
		}
		blocks = append(blocks, raw)
		return true
	})
	if !said && *e.text != "" {
		blocks = append(blocks, transcript.Object("type", "text", "text", *e.text))
	}
	for _, c := range e.calls {
		if c.original == nil {
			blocks = append(blocks, transcript.Object("type", "tool_use", "id", c.ID, "name", c.Name, "input", c.input()))
		}
	}
	list := changes(body, "content", transcript.List(blocks))
	if e.finish != recovery.FinishNone {
		list = append(list, changes(body, "stop_reason", stopReason(e.finish))...)
	}
	return list
}

// input returns a call's arguments, or {} if they are not an object.
func (c *call) input() []byte {
	if raw := []byte(c.Arguments); isObject(raw) && transcript.Valid(raw, maxDepth) == nil {
		return raw
	}
	return []byte("{}")
}

func (*messagesEncoder) blank(c *Composition, streamed bool) []byte {
	usage := `,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":0}}`
	message := transcript.Object("id", "msg_"+transcript.OwnMark+"_"+c.ID, "type", "message", "role", "assistant", "model", c.Model, "content", []byte("[]"))
	message = message[:len(message)-1]
	if !streamed {
		return append(append(message, `,"stop_reason":"end_turn"`...), usage...)
	}
	var m messagesEncoder
	m.say("message_start", "message", append(append(message, `,"stop_reason":null`...), usage...))
	m.say("message_delta", "delta", []byte(`{"stop_reason":"end_turn","stop_sequence":null}`), "usage", []byte(`{"output_tokens":0}`))
	return append(m.out, m.end(nil)...)
}

func (*messagesEncoder) identify(data []byte, request string) (list []transcript.Splice, id string) {
	raw := transcript.String("msg_" + transcript.OwnMark + "_" + request)
	list = changes(data, "message.id", raw)
	if gjson.GetBytes(data, "type").Str == "message" {
		list = append(list, changes(data, "id", raw)...)
	}
	return list, string(raw)
}

// finish returns nil: a message without a stop reason is incomplete.
func (*messagesEncoder) finish(Identity, []byte, int, recovery.Finish) []byte { return nil }

// end returns message_stop for a complete answer, or an error event for a failure. An unknown error
// type becomes overloaded_error, the only one that Claude Code retries within a stream; api_error is
// final.
func (m *messagesEncoder) end(failure []byte) []byte {
	w := messagesEncoder{}
	if failure == nil {
		w.say("message_stop")
		return w.out
	}
	failure = oneLine(failure)
	kind, message := gjson.GetBytes(failure, "error.type").Str, gjson.GetBytes(failure, "error.message").Str
	switch kind {
	case "invalid_request_error", "authentication_error", "permission_error", "billing_error", "not_found_error", "conflict_error", "request_too_large", "api_error":
	default:
		kind = "overloaded_error"
	}
	if message == "" {
		message = string(failure)
	}
	w.say("error", "error", transcript.Object("type", kind, "message", message))
	return w.out
}

// stopReason returns a finish reason in the words of this format.
func stopReason(f recovery.Finish) string {
	switch f {
	case recovery.FinishCalls:
		return "tool_use"
	case recovery.FinishLength:
		return "max_tokens"
	case recovery.FinishFilter:
		return "refusal"
	}
	return "end_turn"
}
