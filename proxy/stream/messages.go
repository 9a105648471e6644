package stream

import (
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Messages is the format of Anthropic's Messages API. Events have names. An answer is a list of blocks
// with indexes from 0; one is open at a time, with a start, pieces and a stop. Usage is cumulative, in
// the first event and in the last but one.
type Messages struct{}

var _ Format = Messages{}

// block is the type of a message's block, as far as this package distinguishes them.
type block uint8

const (
	blockOther    block = iota // of a tool that runs at the provider, or unknown
	blockText                  // text
	blockThinking              // thinking, redacted or not
	blockCall                  // a call that the client makes
)

func blockOf(kind string) block {
	switch kind {
	case "text":
		return blockText
	case "thinking", "redacted_thinking":
		return blockThinking
	case "tool_use":
		return blockCall
	}
	return blockOther
}

// messageFields are the first fields of events.
var messageFields = [...]string{"type", "index", "delta", "content_block", "message", "usage", "error"}

// Decode reads one event.
func (Messages) Decode(ev *Event, known *Known) *Delta {
	return known.decode(ev, (*Delta).ofMessage, messageFields[:], `"content_block`)
}

// messageDelta holds the fields of an event's delta, as raw JSON.
type messageDelta struct{ kind, text, thinking, signature, partial, reason []byte }

func (m *messageDelta) read(c *transcript.Cursor) {
	inner, ok := c.Enter()
	if !ok {
		return
	}
	for inner.Next() {
		switch string(inner.Name()) {
		case "type":
			first(&m.kind, &inner)
		case "text":
			first(&m.text, &inner)
		case "thinking":
			first(&m.thinking, &inner)
		case "signature":
			first(&m.signature, &inner)
		case "partial_json":
			first(&m.partial, &inner)
		case "stop_reason":
			first(&m.reason, &inner)
		}
	}
	c.Leave(inner)
}

// ofMessage reads an event. name is used if the data has no type. It returns false if data is not
// JSON.
func (d *Delta) ofMessage(data []byte, name string, known *Known) bool {
	*d = Delta{Choices: 1, item: item{index: -1}}
	var doc transcript.Document
	var delta messageDelta
	var kind, message, usage, fault []byte
	top, ok := doc.Open(data, maxDepth)
	for ok && top.Next() {
		switch string(top.Name()) {
		case "type":
			first(&kind, &top)
		case "index":
			d.item.index = count(top.Value())
		case "delta":
			delta.read(&top)
		case "content_block":
			first(&d.item.raw, &top)
		case "message":
			first(&message, &top)
		case "usage":
			first(&usage, &top)
		case "error":
			first(&fault, &top)
		}
	}
	if !ok || !doc.End(top) || !doc.Valid() {
		return false
	}
	if v := textOf(kind); v != "" {
		name = v
	}
	it := &d.item
	switch name {
	case "message_start":
		it.event, d.frame = eventCreated, true
		d.again = known.ID.ID != ""
		m := gjson.Parse(viewString(message))
		d.ID.ID = same(known.ID.ID, []byte(m.Get("id").Raw))
		known.ID = d.ID
		d.tokens(m.Get("usage"), known)
	case "content_block_start":
		it.event, d.frame = eventAdded, true
		d.begins(known)
	case "content_block_delta":
		d.piece(&delta, known)
	case "content_block_stop":
		it.event, d.frame = eventDone, true
		d.ends, d.late = known.block == blockText, known.block == blockThinking
		if it.call = known.block == blockCall; it.call {
			d.Kind = KindCall
		}
	case "message_delta":
		it.event, d.frame = eventEnd, true
		d.tokens(gjson.Parse(viewString(usage)), known)
		d.stops(delta.reason)
	case "message_stop":
		d.Kind = KindDone
	case "error":
		d.Kind = KindError
	default:
		if !isEmpty(fault) {
			d.Kind = KindError
		}
	}
	if d.Kind == KindText {
		if !known.said {
			known.part = it.index
		}
		known.said, d.apart = true, known.part != it.index
	}
	return true
}

// begins reads the start of a block. Content in it counts as the first piece.
func (d *Delta) begins(known *Known) {
	v := gjson.Parse(viewString(d.item.raw))
	switch known.block = blockOf(v.Get("type").Str); known.block {
	case blockText:
		if t := v.Get("text"); t.Str == "" {
			d.late = true
		} else {
			d.text(d.item.raw[t.Index : t.Index+len(t.Raw)])
		}
	case blockThinking:
		if d.reasons = true; v.Get("data").Exists() {
			d.Kind = KindReasoning
		}
	case blockCall:
		d.item.call, d.Kind = true, KindCall
	default:
		d.Kind = KindCall // can be neither repeated nor continued
	}
}

// piece reads a piece of a block. An empty one has no meaning.
func (d *Delta) piece(p *messageDelta, known *Known) {
	d.item.event = eventPiece
	switch textOf(p.kind) {
	case "text_delta":
		if isString(p.text) && !isEmpty(p.text) {
			d.text(p.text)
		}
	case "thinking_delta":
		if d.reasons = true; isString(p.thinking) && !isEmpty(p.thinking) {
			d.Kind, d.reasoning = KindReasoning, p.thinking
		}
	case "signature_delta":
		if d.reasons, d.frame = true, true; !isEmpty(p.signature) {
			d.Kind = KindReasoning
		}
	case "input_json_delta":
		d.Kind, d.item.piece, d.item.call = KindCall, p.partial, known.block == blockCall
	default:
		d.Kind = KindCall
	}
}

// stops reads the reason why a message ended.
func (d *Delta) stops(reason []byte) {
	switch {
	case noReason(reason):
		return
	case breaks(textOf(reason)):
		d.Kind = KindCut
		return
	}
	d.Finishes = 1
	switch textOf(reason) {
	case "end_turn":
		d.finish = recovery.FinishStop
	case "stop_sequence":
		d.finish, d.Truthful = recovery.FinishStop, true
	case "tool_use":
		d.finish = recovery.FinishCalls
	case "max_tokens", "model_context_window_exceeded":
		d.finish, d.Truthful = recovery.FinishLength, true
	case "refusal":
		d.finish, d.Truthful = recovery.FinishFilter, true
	default: // such as pause_turn
		d.finish, d.Truthful = recovery.Finish(transcript.Text(reason)), true
	}
}

// tokens reads usage, which is cumulative: missing fields keep their values. Input is the sum of cache
// reads, cache writes and other input.
func (d *Delta) tokens(v gjson.Result, known *Known) {
	if !v.IsObject() {
		return
	}
	set := func(n *int, name string) {
		if f := v.Get(name); f.Type == gjson.Number {
			*n = count([]byte(f.Raw))
		}
	}
	u := &known.usage
	set(&known.fresh, "input_tokens")
	set(&u.CacheWrite, "cache_creation_input_tokens")
	set(&u.CacheRead, "cache_read_input_tokens")
	set(&u.Output, "output_tokens")
	set(&u.Reasoning, "output_tokens_details.thinking_tokens")
	u.Input = known.fresh + u.CacheWrite + u.CacheRead
	d.HasUsage, d.Usage = true, *u
}

// DecodeWhole reads a complete message.
func (Messages) DecodeWhole(body []byte) (d Delta) {
	if body = wholeObject(body); body == nil {
		return Delta{Kind: KindNoise}
	}
	m := gjson.Parse(viewString(body))
	content := m.Get("content")
	d.item.index = -1
	d.ID.ID = string([]byte(m.Get("id").Raw)) // a copy, because m shares the memory of body
	d.tokens(m.Get("usage"), new(Known))
	if !content.IsArray() {
		if d.foreign = true; m.Get("type").Str == "error" || !empty(m.Get("error")) {
			d.Kind = KindError
		}
		return d
	}
	d.Choices, d.message = 1, body
	d.calls = body[content.Index : content.Index+len(content.Raw)]
	if d.stops([]byte(m.Get("stop_reason").Raw)); d.Kind == KindCut {
		return d
	}
	texts := 0
	content.ForEach(func(_, v gjson.Result) bool {
		switch blockOf(v.Get("type").Str) {
		case blockText:
			if t := v.Get("text"); t.Str != "" {
				texts++
				d.Kind, d.Text = max(d.Kind, KindText), t.Str
			}
		case blockThinking:
			d.reasons = true
			if t := v.Get("thinking"); d.reasoning == nil && t.Type == gjson.String {
				d.reasoning = []byte(t.Raw)
			}
		case blockOther:
			d.Kind, d.ran = KindCall, true
		default:
			d.Kind = KindCall
		}
		return true
	})
	d.apart = texts > 1
	return d
}

// ErrorEnds returns true: Anthropic's SDKs and Claude Code raise an error event.
func (Messages) ErrorEnds() bool { return true }

// Ping returns the event that keeps an answer alive: Claude Code is reported to give up after three
// minutes without an event.
func (Messages) Ping() []byte { return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n") }

func (Messages) calls(_ []byte, d *Delta, s *calls) bool { return s.items(d, blockIsCall) }

// blockIsCall returns the call in a block, or nil. A block's start may contain all arguments, or
// pieces follow.
func blockIsCall(v gjson.Result) *call {
	if blockOf(v.Get("type").Str) != blockCall {
		return nil
	}
	c := &call{raw: v.Raw}
	c.ID, c.Kind, c.Name, c.Arguments = v.Get("id").Str, transcript.KindFunction, v.Get("name").Str, v.Get("input").Raw
	if c.Arguments == "" || c.Arguments == "null" {
		c.Arguments = "{}"
	}
	return c
}
