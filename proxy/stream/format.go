package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Format is one wire format of answers: a decoder, which returns the meaning of events and answers,
// and an encoder, which writes everything that is not passed on unchanged. Nothing else in this
// package knows the fields of a format.
type Format interface {
	// Decode returns the meaning of one event. known is the state of the stream and has the memory for
	// the result, which is valid until the next call and as long as ev.
	Decode(ev *Event, known *Known) *Delta
	// DecodeWhole returns the meaning of a complete JSON answer, valid as long as body does not
	// change.
	DecodeWhole(body []byte) Delta
	// ErrorEnds reports whether all known clients treat an error event as a failure, so that the
	// stream may end normally after it.
	ErrorEnds() bool

	// calls adds the calls of an event, or of a complete answer, to s. It reports whether there are
	// any, or other content that must wait like calls.
	calls(data []byte, d *Delta, s *calls) bool
	// encoder returns an encoder for a client that has the beginning of another attempt's answer, or
	// if client is nil for changes to this answer.
	encoder(client *Sink) encoder
}

// End returns the end of a stream in a format: an error event for failure, which is an error body, or
// if failure is nil whatever must follow the last event.
func End(f Format, failure []byte, client *Sink) []byte { return f.encoder(client).end(failure) }

// Kind is what an event contains, in the order of how much it commits the answer.
type Kind uint8

// The kinds of events.
const (
	KindNothing   Kind = iota // a role, a ping, an empty choice, a comment
	KindNoise                 // neither JSON nor a truncated chunk
	KindReasoning             // unsigned reasoning
	KindText                  // text of the answer
	KindCall                  // a tool call, a refusal, audio, signed reasoning: not repeatable
	KindError                 // the upstream reports a failure
	KindCut                   // a truncated chunk: its content is lost
	KindDone                  // the end of the stream
)

// Delta is the meaning of one event, or of a complete answer, independent of the format.
type Delta struct {
	Kind     Kind
	Text     string // decoded text of the first choice with text, valid as long as the bytes of the event
	Finishes int    // choices that give a finish reason
	over     uint64 // bits of their indexes; 0 in formats with one choice
	Truthful bool   // the finish reason explains an empty answer (length, content_filter)
	Choices  int    // number of choices in it
	Several  bool   // it belongs to another choice than the first, has two texts, or has logprobs
	Usage    recovery.Usage
	HasUsage bool
	ID       Identity

	message []byte          // the delta or message of the last choice, as raw JSON
	finish  recovery.Finish // the last choice's finish reason
	texts   []byte          // Text as JSON
	padding []byte          // a string that gives all events the same length
	reasons bool            // it contains reasoning
	faulty  bool            // a choice has an error
	foreign bool            // it has nothing in which the format puts an answer
	ran     bool            // of a complete answer: a tool has run at the provider, and would run again in another attempt

	// Fields of the first choice's message; of a duplicate field the first.
	calls     []byte // tool_calls
	function  []byte // function_call
	reasoning []byte // text of the reasoning

	frame bool // clients build the answer's structure from it, so later events must fit
	ends  bool // no more text follows
	again bool // it begins a message that has begun
	apart bool // its text does not continue the text before it
	// late: it is sent together with the next event. This is so for the end of thinking, which clients
	// would take for an answer, and for the beginning of a text block, which may stay empty.
	late  bool
	seq   int    // its number in the stream
	fault []byte // the error of a KindError, nil if it is the whole event
	item  item   // of a response or a message
}

// Identity is what all chunks of one stream have in common, as raw JSON.
type Identity struct{ ID, Created string }

var doneEvent = []byte("data: [DONE]\n\n")

// maxDepth limits the nesting of upstreams' JSON.
const maxDepth = 256

// payload returns the trimmed data of an event, or nil if the kind is all of its meaning.
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

// decode reads an event of a format whose events have types. read returns false for data that is not
// JSON; fields and mark are those of partOf.
func (k *Known) decode(ev *Event, read func(d *Delta, data []byte, name string, known *Known) bool, fields []string, mark string) *Delta {
	d := &k.means
	data, kind := payload(ev)
	if *d = (Delta{Kind: kind}); len(data) == 0 {
		return d
	}
	k.commits = true
	if read(d, data, viewString(ev.Name), k) {
		return d
	}
	if other := lenient(data); other != nil && read(d, other, viewString(ev.Name), k) {
		return d
	}
	*d = Delta{Kind: KindNoise}
	if partOf(data, fields, mark) {
		d.Kind = KindCut
	}
	return d
}

// oneLine returns an error body without line breaks, or a generic one if it is not JSON.
func oneLine(body []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, body) != nil {
		return []byte(`{"error":{"message":"the upstream's error could not be read","type":"rebound_error","param":null,"code":"unknown"}}`)
	}
	return b.Bytes()
}

// partOf reports whether data that is not JSON is a truncated event: an object that begins with one of
// the fields, or with a prefix of one, or any data that contains mark.
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
