package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Format is one wire format of answers: a decoder, which says what events and answers mean,
// and an encoder, which writes what does not go out as it came. Nothing else in this package
// knows a field of a format.
type Format interface {
	// Decode returns the meaning of one event. known is what the events before it had in
	// common, and has the room for the result: it is the caller's until the next call, and
	// as long as ev is valid.
	Decode(ev *Event, known *Known) *Delta
	// DecodeWhole returns the meaning of a complete JSON answer without its identity, valid as long as
	// body does not change.
	DecodeWhole(body []byte) Delta
	// ErrorEnds reports whether all known clients take an error event for a failure, so that
	// the stream may end behind it as streams do.
	ErrorEnds() bool

	// calls adds the calls of an event, or of a complete answer, to those before it, and reports
	// whether it has any, or anything else that waits as they do.
	calls(data []byte, d *Delta, s *calls) bool
	// encoder returns an encoder for a client that has the beginning of another answer; or,
	// if client is nil, for changes of this one.
	encoder(client *Sink) encoder
}

// End returns what ends a stream in a format: after an error, as the body of a response;
// without one what has to follow the last event.
func End(f Format, failure []byte, client *Sink) []byte { return f.encoder(client).end(failure) }

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

// Delta is the meaning of one event, or of a complete answer, in no format's words.
type Delta struct {
	Kind     Kind
	Text     string // decoded text of the first choice that has some, valid as long as the bytes it was read from
	Finishes int    // choices that give a finish reason
	Truthful bool   // the finish reason explains an empty answer (length, content_filter)
	Choices  int    // number of choices in it
	Several  bool   // it belongs to a choice other than the first, has two texts, or carries logprobs
	Usage    recovery.Usage
	HasUsage bool
	ID       Identity

	message []byte          // the delta or message of the last choice, as it stands in the event
	finish  recovery.Finish // the last choice's finish reason
	texts   []byte          // Text as JSON
	padding []byte          // a string that makes events equally long
	reasons bool            // it has reasoning
	faulty  bool            // a choice has an error

	// Fields of the first choice's message; of one that occurs twice the first.
	calls     []byte // tool_calls
	function  []byte // function_call
	reasoning []byte // text of the reasoning

	frame bool   // clients build the answer's structure from it: what follows must fit
	ends  bool   // no more text follows
	apart bool   // its text is not a part of the text before it
	late  bool   // it goes out with the event behind it: the end of thinking, which clients take for an answer; and the beginning of text, of which nothing may come
	seq   int    // its number in the stream
	fault []byte // what a KindError says, nil where that is the event itself
	item  item   // of a response
}

// Identity is what all chunks of one stream have in common, as raw JSON.
type Identity struct{ ID, Created string }

var doneEvent = []byte("data: [DONE]\n\n")

// maxDepth bounds the nesting of what upstreams send.
const maxDepth = 256

// payload returns the data of an event without space around it; none for one that says
// nothing but its kind.
func payload(ev *Event) (data []byte, kind Kind) {
	data = ev.Data
	if n := len(data); n == 0 || data[0] != '{' || data[n-1] != '}' {
		data = bytes.TrimSpace(data)
	}
	switch {
	case !ev.HasData, len(data) == 0:
		return nil, KindNothing
	case string(data) == "[DONE]":
		return nil, KindDone
	}
	return data, KindNothing
}

// oneLine returns an error body without line breaks.
func oneLine(body []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, body) != nil {
		return []byte(`{"error":{"message":"the upstream's error could not be read","type":"rebound_error","param":null,"code":"unknown"}}`)
	}
	return b.Bytes()
}

// partOf reports whether data that is not JSON is what was left of an event: an
// object that begins with one of its fields, as far as it goes, or anything with a mark.
func partOf(data []byte, fields []string, mark string) bool {
	if bytes.Contains(data, []byte(mark)) {
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
	return rest[0] == '"' && slices.ContainsFunc(fields, func(f string) bool {
		return f == string(name) || !whole && strings.HasPrefix(f, string(name))
	})
}
