package stream

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Format reads answers of one wire format. Chat is the first; another format
// is another reader, and nothing else changes.
type Format interface {
	// Delta says what one event means. known is what those before it had in common,
	// of which it is the next, and has the room for the result: it is the caller's
	// until the next call, and as long as ev is valid.
	Delta(ev *Event, known *Known) *Delta
	// WholeIn says what a complete JSON answer is, but for its identity, as long as
	// body does not change. room is for its calls; nil where nobody asks for them.
	WholeIn(body []byte, room []recovery.DraftCall) Delta
	// WithText returns data with its text replaced and its identity set to id
	// and created (raw JSON values; empty: unchanged).
	WithText(data []byte, text string, id Identity) []byte
	// Identify returns data with its identity set.
	Identify(data []byte, id Identity) []byte
	// WithUsage returns data with these tokens of prompt and answer in its usage.
	WithUsage(data []byte, u recovery.Usage) []byte
	// Later returns data with its identity set and without a role, for a client that has one.
	Later(data []byte, id Identity) []byte
	// TextEvent returns data for an event with nothing but text, in the likeness of another.
	TextEvent(like []byte, text string, id Identity) []byte
	// Done is the event that ends a stream.
	Done() []byte
}

// Kind is what an event carries, by how much it commits the answer.
type Kind uint8

// The kinds of events.
const (
	KindNothing   Kind = iota // a role, a ping, an empty choice, a comment
	KindNoise                 // not JSON, nor a part of a chunk
	KindReasoning             // unsigned reasoning
	KindText                  // text of the answer
	KindCall                  // a tool call, a refusal, audio, signed reasoning: not repeatable
	KindError                 // the upstream reports a failure
	KindCut                   // a part of a chunk: what it said is lost
	KindDone                  // the end of the stream
)

// Delta is the meaning of one event, or of a complete answer.
type Delta struct {
	Kind     Kind
	Text     string // decoded text of the first choice that has some, valid as long as what it was read from
	Finishes int    // choices that give a finish reason
	Truthful bool   // the finish reason explains an empty answer (length, content_filter)
	Choices  int    // number of choices in it
	Several  bool   // it belongs to a choice other than the first, has two texts, or carries logprobs
	Usage    recovery.Usage
	HasUsage bool
	ID       Identity

	message []byte // the delta or message of the last choice, as it stands in the event
	finish  []byte // its finish reason
	texts   []byte // the string that Text was read from
	padding []byte // a string of the event that says nothing
	reasons bool   // it has reasoning

	// Fields of the first choice's message; of one that occurs twice the first.
	calls     []byte // tool_calls
	function  []byte // function_call
	reasoning []byte // text of the reasoning

	// What the list of calls of a complete message has, if that is asked for; as wholeCalls.
	drafts []recovery.DraftCall
	odd    bool
}

// Identity is what all chunks of one stream have in common, as raw JSON.
type Identity struct{ ID, Created string }

// Chat is the format of chat completions.
type Chat struct{}

var _ Format = Chat{}

var doneEvent = []byte("data: [DONE]\n\n")

// Done is the event that ends a stream.
func (Chat) Done() []byte { return doneEvent }

// maxDepth bounds the nesting of what upstreams send.
const maxDepth = 256

// Delta reads one chunk.
func (Chat) Delta(ev *Event, known *Known) *Delta {
	d := &known.means
	data := ev.Data
	if n := len(data); n == 0 || data[0] != '{' || data[n-1] != '}' {
		data = bytes.TrimSpace(data)
	}
	switch {
	case !ev.HasData, len(data) == 0:
		*d, known.like.filled = Delta{}, false
		return d
	case string(data) == "[DONE]":
		*d, known.like.filled = Delta{Kind: KindDone}, false
		return d
	}
	if !known.like.match(data, d, known.ID) {
		d.read(data, "delta", &known.ID)
		if d.ID.ID != "" {
			known.ID = d.ID
		}
		known.like.learn(data, d, known.ID)
	}
	switch {
	case d.Kind == KindNoise && partOfChunk(data):
		d.Kind = KindCut
	case string(ev.Name) == "error" && d.Kind != KindNoise:
		d.Kind = KindError
	}
	return d
}

// chunkFields are the fields that chunks begin with.
var chunkFields = [...]string{"id", "choices", "object", "created", "model", "provider", "usage", "system_fingerprint", "service_tier"}

// partOfChunk reports whether data that is not JSON is what was left of a chunk: an
// object that begins with a chunk's field, as far as it goes, or anything with choices.
func partOfChunk(data []byte) bool {
	if bytes.Contains(data, []byte(`"choices"`)) {
		return true
	}
	rest, ok := bytes.CutPrefix(data, []byte("{"))
	if !ok {
		return false
	}
	if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
		return true
	}
	name, whole := rest[1:], false
	if i := bytes.IndexByte(name, '"'); i >= 0 {
		name, whole = name[:i], true
	}
	return rest[0] == '"' && slices.ContainsFunc(chunkFields[:], func(f string) bool {
		return f == string(name) || !whole && strings.HasPrefix(f, string(name))
	})
}

// Whole reads a complete answer without its calls.
func (c Chat) Whole(body []byte) Delta { return c.WholeIn(body, nil) }

// WholeIn reads a complete answer, and its calls into room.
func (Chat) WholeIn(body []byte, room []recovery.DraftCall) (d Delta) {
	d.drafts = room
	d.read(body, "message", nil)
	return d
}

// WithText replaces the first choice's text and sets the identity.
func (c Chat) WithText(data []byte, text string, id Identity) []byte {
	v := gjson.GetBytes(data, "choices.0.delta.content")
	if v.Index <= 0 {
		v = gjson.GetBytes(data, "choices.0.text") // legacy completions
	}
	if v.Index > 0 {
		out := make([]byte, 0, len(data)+len(text))
		out = append(out, data[:v.Index]...)
		out = append(out, transcript.String(text)...)
		data = append(out, data[v.Index+len(v.Raw):]...)
	}
	return c.Identify(data, id)
}

// Identify sets the identity.
func (Chat) Identify(data []byte, id Identity) []byte {
	for _, f := range [2]struct{ name, raw string }{{"id", id.ID}, {"created", id.Created}} {
		v := gjson.GetBytes(data, f.name)
		if f.raw == "" || v.Index <= 0 || v.Raw == f.raw {
			continue
		}
		out := make([]byte, 0, len(data)+len(f.raw))
		out = append(out, data[:v.Index]...)
		out = append(out, f.raw...)
		data = append(out, data[v.Index+len(v.Raw):]...)
	}
	return data
}

// WithUsage sets the tokens of the prompt, of the answer, and of both.
func (c Chat) WithUsage(data []byte, u recovery.Usage) []byte {
	for _, f := range [3]struct {
		path string
		n    int
	}{{"usage.prompt_tokens", u.Input}, {"usage.completion_tokens", u.Output}, {"usage.total_tokens", u.Input + u.Output}} {
		if v := gjson.GetBytes(data, f.path); v.Type == gjson.Number && v.Index > 0 {
			data = replaced(data, v.Index, len(v.Raw), strconv.AppendInt(nil, int64(f.n), 10))
		}
	}
	return data
}

// Later sets the identity and removes the role.
func (c Chat) Later(data []byte, id Identity) []byte {
	v := gjson.GetBytes(data, "choices.0.delta")
	if v.Index > 0 && v.IsObject() && v.Get("role").Exists() {
		out := make([]byte, 0, len(data))
		out = append(append(out, data[:v.Index]...), '{')
		v.ForEach(func(k, f gjson.Result) bool {
			if k.Str == "role" {
				return true
			}
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(append(append(out, k.Raw...), ':'), f.Raw...)
			return true
		})
		data = append(append(out, '}'), data[v.Index+len(v.Raw):]...)
	}
	return c.Identify(data, id)
}

// TextEvent builds a chunk with nothing but text.
func (c Chat) TextEvent(like []byte, text string, id Identity) []byte {
	out := []byte(`{"id":"","object":"chat.completion.chunk","created":0,"model":`)
	if m := gjson.GetBytes(like, "model"); m.Exists() {
		out = append(out, m.Raw...)
	} else {
		out = append(out, `""`...)
	}
	out = append(out, `,"choices":[{"index":0,"delta":{"content":`...)
	out = append(out, transcript.String(text)...)
	out = append(out, `},"finish_reason":null}]}`...)
	return c.Identify(out, id)
}
