package fit

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// history is the conversation as the tiers read it. It is computed once; one goroutine uses it.
type history struct {
	body  *transcript.Body
	items []item
	// leadEnd is how many messages stand before the first answer, or before what
	// took the place of it: the instructions and the task.
	leadEnd int
	// textProtocol is set for text protocols: tools answer in messages of the user.
	textProtocol bool
	nativeTools  bool // tools are offered, or were called
	// callsPending says of each message whether a call before it has its result there or behind
	// it; nil where results stand right behind their calls.
	callsPending []bool

	cache    *parseCache
	secret   []byte // see keyed
	excerpts excerpts
}

// item is one message.
type item struct {
	transcript.Message
	*parsedMessage
	calls     []callInfo // as they stand in the body
	result    bool       // a tool's answer
	callIndex int        // which of the caller's calls it answers
	caller    int        // index of the message that made the call, -1 if none did
	call      callInfo   // the call that it answers, if result
	key       uint64     // of the content, see keyed
	sum       [32]byte   // of the content
}

// newHistory reads the history of a client with a credential. What was read before is taken from r.
func newHistory(b *transcript.Body, r *parseCache, credential []byte) *history {
	list := b.Messages()
	v := &history{body: b, items: make([]item, len(list)), leadEnd: len(list), cache: r, secret: secretOf(credential), excerpts: excerpts{}}
	v.nativeTools = len(b.Tools()) > 0
	for i, m := range list {
		said := r.parse(m)
		it := item{Message: m, parsedMessage: said, calls: said.callsIn(b, m), caller: -1, result: m.Role == transcript.RoleTool}
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

// markObservations marks the results of a text protocol; false where this is none.
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

// pair finds the call that each tool message answers: one of the turn before it, or of
// any where the format allows that. There it finds where the history cannot be cut.
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

// pairIn finds the calls of the tool messages from start to end among those that stand there.
func (v *history) pairIn(start, end int, pairing *trajectory.Pairing) {
	var made [][2]int // message, number in it
	for i := start; i < end; i++ {
		for n := range v.items[i].calls {
			made = append(made, [2]int{i, n})
		}
	}
	pairing.Begin(len(made))
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

// failed reports whether a result says that its call failed. It is read when it
// is asked for first.
func (it *item) failed() bool {
	memo := &it.failure[0]
	if it.call.returnsData { // what it shows is not read
		memo = &it.failure[1]
	}
	if memo.Load() == 0 {
		n := int32(-1)
		if reportsFailure(it.text, it.call.returnsData) {
			n = 1
		}
		memo.Store(n)
	}
	return memo.Load() > 0
}

// boundary reports whether the history may be cut before message i: no call is
// there without its results, no result without its call.
func (v *history) boundary(i int) bool {
	return i >= len(v.items) || !v.items[i].result && v.items[i].Role != transcript.RoleTool && (v.callsPending == nil || !v.callsPending[i])
}

// stepStart is where the step begins that message i belongs to: an answer and
// the results of its calls.
func (v *history) stepStart(i int) int {
	for i > 0 && !v.boundary(i) {
		i--
	}
	return i
}

// stepEnd is the end of the step that begins at i.
func (v *history) stepEnd(i int) int {
	for i++; !v.boundary(i); i++ {
	}
	return i
}

// isCompressed reports content that was replaced before.
func isCompressed(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), `{"_compressed"`)
}

// lastStep is where the last answer's step begins; the end of the history if
// there is no answer.
func (v *history) lastStep() int {
	for i := len(v.items) - 1; i >= 0; i-- {
		if v.items[i].Role == transcript.RoleAssistant {
			return i
		}
	}
	return len(v.items)
}
