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
	// lead is how many messages stand before the first answer, or before what
	// took the place of it: the instructions and the task.
	lead int
	// prose is set for text protocols: tools answer in messages of the user.
	prose  bool
	native bool // tools are offered, or were called
	// open says of each message whether a call before it has its result there or behind
	// it; nil where results stand right behind their calls.
	open []bool

	readings *readings
	excerpts excerpts
}

// item is one message.
type item struct {
	transcript.Message
	*reading
	calls  []callInfo // as they stand in the body
	result bool       // a tool's answer
	answer int        // which of the caller's calls it answers
	caller int        // index of the message that made the call, -1 if none did
	call   callInfo   // the call that it answers, if result
	key    uint64     // of the content, see keyed
	sum    [32]byte   // of the content
}

// newHistory reads the history. What was read before is taken from r.
func newHistory(b *transcript.Body, r *readings) *history {
	list := b.Messages()
	v := &history{body: b, items: make([]item, len(list)), lead: len(list), readings: r, excerpts: excerpts{}}
	v.native = len(b.Tools()) > 0
	for i, m := range list {
		said := r.read(m)
		it := item{Message: m, reading: said, calls: said.callsIn(b, m), caller: -1, result: m.Role == transcript.RoleTool}
		v.native = v.native || m.Role == transcript.RoleTool || len(it.calls) > 0
		if v.lead == len(list) && (m.Role == transcript.RoleAssistant || it.summary()) {
			v.lead = i
		}
		v.items[i] = it
	}
	v.prose = !v.native && v.observes()
	v.pair(list)
	return v
}

// observes finds out whether this is a text protocol, and marks its results. A
// person's words must not be taken for one: the instructions have to speak of
// it, and two thirds of the answers have to end with a command.
func (v *history) observes() bool {
	asked, acts := 0, map[int]callInfo{}
	for i := 1; i < len(v.items); i++ {
		if v.items[i].Role != transcript.RoleUser || v.items[i-1].Role != transcript.RoleAssistant {
			continue
		}
		asked++
		if a, ok := trajectory.Observed(v.items[i-1].text, v.items[i].text, true); ok {
			acts[i] = readCall(transcript.ToolCall{Name: a.Tool}, a.Arguments)
		}
	}
	if len(acts) == 0 || 3*len(acts) < 2*asked || !v.instructed() {
		return false
	}
	for i, c := range acts {
		it := &v.items[i]
		it.result, it.caller, it.call = true, i-1, c
	}
	return true
}

// instructed reports whether what stands before the first answer tells the
// model how to give commands.
func (v *history) instructed() bool {
	for i := range v.items[:v.lead] {
		text := strings.ToLower(v.items[i].text)
		for _, word := range []string{"command", "tool", "execute", "action"} {
			if strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}

// pair finds the call that each tool message answers.
func (v *history) pair(list []transcript.Message) {
	var pairing trajectory.Pairing
	var made [][2]int // the calls of a turn: message, number in it
	t, ok := trajectory.TurnBefore(list, len(list))
	for ; ok; t, ok = trajectory.TurnBefore(list, t.Start) {
		made = made[:0]
		for i := t.Start; i < t.Answered; i++ {
			for n := range v.items[i].calls {
				made = append(made, [2]int{i, n})
			}
		}
		pairing.Begin(len(made))
		for _, c := range made {
			pairing.Add(v.items[c[0]].calls[c[1]].ID)
		}
		for i := t.Answered; i < t.End; i++ {
			it := &v.items[i]
			if it.Role != transcript.RoleTool {
				continue
			}
			if n := pairing.Answer([]byte(it.answers)); n >= 0 {
				it.caller, it.answer = made[n][0], made[n][1]
				it.call = v.items[it.caller].calls[it.answer]
			}
		}
	}
	if v.body.PairsAnywhere() {
		v.pairLate()
	}
}

// pairLate finds the calls that were answered after further turns of the model, and
// where the history cannot be cut for it.
func (v *history) pairLate() {
	calls := map[string][2]int{}      // message, number in it
	last := make([]int, len(v.items)) // where the last result of its calls stands
	for i := range v.items {
		it := &v.items[i]
		for n, c := range it.calls {
			calls[c.ID] = [2]int{i, n}
		}
		if it.Role != transcript.RoleTool {
			continue
		}
		if at, ok := calls[it.answers]; ok && it.caller < 0 {
			it.caller, it.answer, it.call = at[0], at[1], v.items[at[0]].calls[at[1]]
		}
		if it.caller >= 0 {
			last[it.caller] = i
		}
	}
	v.open = make([]bool, len(v.items))
	until := -1
	for i := range v.items {
		v.open[i] = i <= until
		until = max(until, last[i])
	}
}

// failed reports whether a result says that its call failed. It is read when it
// is asked for first.
func (it *item) failed() bool {
	memo := &it.fails[0]
	if it.call.data { // what it shows is not read
		memo = &it.fails[1]
	}
	if memo.Load() == 0 {
		n := int32(-1)
		if failed(it.text, it.call.data) {
			n = 1
		}
		memo.Store(n)
	}
	return memo.Load() > 0
}

// boundary reports whether the history may be cut before message i: no call is
// there without its results, no result without its call.
func (v *history) boundary(i int) bool {
	return i >= len(v.items) || !v.items[i].result && v.items[i].Role != transcript.RoleTool && (v.open == nil || !v.open[i])
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

// compressed reports content that was replaced before.
func compressed(text string) bool {
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
