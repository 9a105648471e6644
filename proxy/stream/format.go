package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Format is one wire format of answers. It says what events and answers mean, and
// writes what the gateway puts in their place; nothing else here knows a field of one.
type Format interface {
	// Delta says what one event means. known is what those before it had in common,
	// of which it is the next, and has the room for the result: it is the caller's
	// until the next call, and as long as ev is valid.
	Delta(ev *Event, known *Known) *Delta
	// Whole says what a complete JSON answer is, but for its identity, as long as
	// body does not change.
	Whole(body []byte) Delta

	// calls adds the calls of an event to those before it, and reports whether it has
	// any, or anything else that waits as they do.
	calls(data []byte, d *Delta, s *calls) bool
	// wholeCalls are the calls of a complete answer; odd means that clients read something else.
	wholeCalls(d *Delta) (list []wholeCall, odd bool)
	// rewrite puts what w says in the place of calls, text and end in a stretch of a stream.
	rewrite(events []byte, w *rewriting) []byte
	// splices are the changes that a verdict makes to a complete answer with these calls.
	splices(body []byte, s *calls, v recovery.Verdict) []splice
	// brand is the change that gives an event or an answer the identity of the gateway's
	// own answer to a request, and that identity.
	brand(data []byte, request string) (list []splice, id string)
	// follow returns what writes events for a client that has seen the beginning of another answer.
	follow(a *Answer) follower
	// finish is the data of an event that gives all choices of a stream their finish reason; nil
	// in formats that have another end.
	finish(id Identity, model []byte, choices int, reason string) []byte
	// unfinish is events without their finish reason.
	unfinish(events []byte) []byte
	// compose is an answer that the gateway writes, as a stream or whole.
	compose(c *Composition, streamed bool) []byte
	// ErrorEnds reports whether all known clients take an error event for a failure, so that
	// the stream may end behind it as streams do.
	ErrorEnds() bool
	// Ending is what ends a stream: after an error, as the body of a response; without
	// one what has to follow the last event.
	Ending(failure []byte, s *Sink) []byte
}

// follower writes the events of an answer for a client that has the beginning of another.
type follower interface {
	// event is what goes out for an event, empty for nothing; ok is false where the
	// client has something else in its place.
	event(ev *Event, d *Delta, c change) (out []byte, ok bool)
	// calls is event for a client that has all of the text: only calls and the end go on.
	calls(ev *Event, d *Delta) []byte
}

// change is what becomes of an event that follows the beginning of another answer.
type change struct {
	retext bool // its text is now text
	text   string
	before string          // text that comes before it
	usage  *recovery.Usage // in the place of its own; nil leaves it
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

	message []byte          // the delta or message of the last choice, as it stands in the event
	finish  recovery.Finish // its finish reason
	texts   []byte          // the string that Text was read from
	padding []byte          // a string of the event that says nothing
	reasons bool            // it has reasoning
	faulty  bool            // a choice has an error

	// Fields of the first choice's message; of one that occurs twice the first.
	calls     []byte // tool_calls
	function  []byte // function_call
	reasoning []byte // text of the reasoning

	frame bool   // clients put the answer together by it: what follows it has to fit
	ends  bool   // no more text follows it
	apart bool   // its text is not a part of the text before it
	seq   int    // its number in the stream
	fault []byte // what a KindError says, nil where that is the event itself
	item  item   // of a response
}

// Identity is what all chunks of one stream have in common, as raw JSON.
type Identity struct{ ID, Created string }

var doneEvent = []byte("data: [DONE]\n\n")

// maxDepth bounds the nesting of what upstreams send.
const maxDepth = 256

// payload is the data of an event without space around it; none for one that says
// nothing else than its kind.
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

// oneLine is an error body without line breaks, as an event has it.
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
