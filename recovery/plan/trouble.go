package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// trouble is why a planner is asked.
type trouble struct {
	key     uint64 // equal while it is the same
	tool    string // that failed or is repeated; empty for no call
	count   int    // how often so far
	failure *recovery.ToolFailure
	loop    *recovery.Loop
}

// troubleOf is what the exchange's agent is stuck in; false where it is not, where
// only a person can say how to go on, and where nothing may be said.
func troubleOf(x *recovery.Exchange) (t trouble, ok bool) {
	if x.Ladder.Rung < recovery.RungStuck || x.Turn.Waits || x.Body == nil || x.Body.ToolChoice().Choice == transcript.ChoiceNone {
		return t, false
	}
	t.loop, t.failure = x.Repetition(), cmp.Or(x.Turn.Failure, x.Ladder.Failure)
	switch {
	case t.failure != nil:
		t.tool, t.count, t.key = t.failure.Tool, max(x.Turn.Streak, x.Turn.Seen, x.Ladder.Same), t.failure.Fingerprint
	case t.loop != nil:
		if t.key = t.loop.Fingerprint; len(t.loop.Tools) > 0 {
			t.tool = t.loop.Tools[0]
		}
	default: // nothing is new
		t.key, t.count = trajectory.Hash("stuck"), max(2, x.Progress.Steps)
	}
	if t.loop != nil {
		t.count = max(t.count, t.loop.Count)
	}
	// An agent that only talks is told to go on by its program.
	if len(x.Results) > 0 && x.Spoken() || x.Refused() {
		return t, false
	}
	return t, x.Side == nil || !x.Side()
}

// Asks reports whether a planner would be asked about an exchange whose findings are
// known.
func Asks(x *recovery.Exchange) bool {
	_, ok := troubleOf(x)
	return ok
}

// slotOf names the turn that the trouble ended with: the same for a client's retry.
func slotOf(x *recovery.Exchange) string {
	if x.Turn.Slot != "" {
		return x.Turn.Slot
	}
	list := x.Body.Messages()
	return strconv.FormatUint(trajectory.Hash(strconv.Itoa(len(list)), string(list[len(list)-1].Raw())), 36)
}

// maxRun bounds how far back the turns of one tool are counted.
const maxRun = 60

// run is how many turns at the end of the history called this tool and no other.
func run(x *recovery.Exchange, tool string) (n int) {
	h := trajectory.NewHistory(x.Body)
	for t, ok := trajectory.TurnBefore(h.List, len(h.List)); ok && n < maxRun; t, ok = trajectory.TurnBefore(h.List, t.Start) {
		calls := h.Calls(t)
		if slices.ContainsFunc(calls, func(c trajectory.MadeCall) bool { return c.Name != tool }) {
			break
		}
		if len(calls) > 0 {
			n++
		}
	}
	return n
}
