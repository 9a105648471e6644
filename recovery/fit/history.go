package fit

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// history is the parsed conversation, built once per exchange. Not safe for concurrent use.
type history struct {
	body  *transcript.Body
	items []item
	// leadEnd is where the instructions and the task end: the index of the first answer, or
	// of a summary that replaced it.
	leadEnd int
	// textProtocol is set if the agent calls tools in plain text, and results are user messages.
	textProtocol bool
	nativeTools  bool // tools are offered, or were called
	// callsPending is true for a message if a call before it has its result there or later. It
	// is nil for formats whose results directly follow their calls.
	callsPending []bool

	cache    *parseCache
	secret   []byte // see setKeys
	excerpts excerpts
}

// item is one message.
type item struct {
	transcript.Message
	*parsedMessage
	calls     []callInfo // with their places in the body
	result    bool       // a tool's result
	callIndex int        // which of the caller's calls it answers
	caller    int        // index of the message that made the call, -1 if none did
	call      callInfo   // the call that it answers, if result
	key       uint64     // of the content, see setKeys
	sum       [32]byte   // of the content
}

// newHistory parses a body's messages; r caches those of earlier requests. The credential makes
// the keys of the messages secret.
func newHistory(b *transcript.Body, r *parseCache, credential []byte) *history {
	list := b.Messages()
	v := &history{body: b, items: make([]item, len(list)), leadEnd: len(list), cache: r, secret: secretOf(credential), excerpts: excerpts{}}
	v.nativeTools = len(b.Tools()) > 0
	for i, m := range list {
		p := r.parse(m)
		it := item{Message: m, parsedMessage: p, calls: p.callsIn(b, m), caller: -1, result: m.Role == transcript.RoleTool}
		v.nativeTools = v.nativeTools || m.Role == transcript.RoleTool || len(it.calls) > 0
		if v.leadEnd == len(list) && (m.Role == transcript.RoleAssistant || it.isReplacement()) {
			v.leadEnd = i
		}
		v.items[i] = it
	}
	v.textProtocol = !v.nativeTools && v.markObservations()
	v.pair()
	v.setKeys()
	return v
}

// markObservations marks the results of a text protocol. It returns false if there are none.
func (v *history) markObservations() (found bool) {
	h := trajectory.NewHistory(v.body)
	for i := range v.items {
		if res, ok := h.Observation(i); ok {
			it := &v.items[i]
			it.result, it.caller, it.call = true, res.Caller, readCall(transcript.ToolCall{Name: res.Tool}, res.Arguments)
			found = true
		}
	}
	return found
}

// pair finds the call that each tool message answers: one of the turn before it, or any
// if the format allows that; then it also fills callsPending.
func (v *history) pair() {
	list := v.body.Messages()
	var pairing trajectory.Pairing
	if !v.body.PairsAnywhere() {
		for t, ok := trajectory.TurnBefore(list, len(list)); ok; t, ok = trajectory.TurnBefore(list, t.Start) {
			v.pairIn(t.Start, t.End, &pairing)
		}
		return
	}
	v.pairIn(0, len(list), &pairing)
	last := make([]int, len(list)) // where the last result of a message's calls stands
	for i := range v.items {
		if at := v.items[i].caller; at >= 0 {
			last[at] = i
		}
	}
	v.callsPending = make([]bool, len(list))
	until := -1
	for i := range v.items {
		v.callsPending[i] = i <= until
		until = max(until, last[i])
	}
}

// pairIn pairs the tool messages from start to end with the calls made there.
func (v *history) pairIn(start, end int, pairing *trajectory.Pairing) {
	var made [][2]int // message, number in it
	for i := start; i < end; i++ {
		for n := range v.items[i].calls {
			made = append(made, [2]int{i, n})
		}
	}
	pairing.Begin()
	for _, c := range made {
		pairing.Add(v.items[c[0]].calls[c[1]].ID)
	}
	for i := start; i < end; i++ {
		it := &v.items[i]
		if it.Role != transcript.RoleTool {
			continue
		}
		if n := pairing.Answer([]byte(it.answers)); n >= 0 {
			it.caller, it.callIndex = made[n][0], made[n][1]
			it.call = v.items[it.caller].calls[it.callIndex]
		}
	}
}

// failed reports whether a result says that its call failed. Errors in data that it shows are not its own.
func (it *item) failed() bool { return reportsFailure(it.text, it.call.returnsData) }

// boundary reports whether the history may be cut before message i without separating a
// call from its result.
func (v *history) boundary(i int) bool {
	return i >= len(v.items) || !v.items[i].result && v.items[i].Role != transcript.RoleTool && (v.callsPending == nil || !v.callsPending[i])
}

// stepStart returns the start of the step that message i belongs to. A step is an answer and
// the results of its calls.
func (v *history) stepStart(i int) int {
	for i > 0 && !v.boundary(i) {
		i--
	}
	return i
}

// stepEnd returns the end of the step that begins at i.
func (v *history) stepEnd(i int) int {
	for i++; !v.boundary(i); i++ {
	}
	return i
}

// isCompressed reports whether a text is a replacement that an earlier fitting made.
func isCompressed(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), `{"_compressed"`)
}

// lastStep returns the index of the last answer, or the number of messages if there is none.
func (v *history) lastStep() int {
	for i := len(v.items) - 1; i >= 0; i-- {
		if v.items[i].Role == transcript.RoleAssistant {
			return i
		}
	}
	return len(v.items)
}
