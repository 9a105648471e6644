package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// trouble is the reason for asking a planner.
type trouble struct {
	key     uint64 // equal while the trouble is the same
	tool    string // the tool that failed or is repeated; empty if no call is
	count   int    // occurrences so far
	failure *recovery.ToolFailure
	loop    *recovery.Loop
}

// troubleOf returns the trouble of the exchange's agent; ok is false if there is none, if a person has to say
// how to continue, or if notes are not possible.
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
	default: // no progress
		t.key, t.count = trajectory.Hash("stuck"), max(2, x.Progress.Steps)
	}
	if t.loop != nil {
		t.count = max(t.count, t.loop.Count)
	}
	// If an agent calls no tools, a user message is its program's prompt to go on.
	if len(x.Results) > 0 && x.PersonSpokeLast() || x.Refused() {
		return t, false
	}
	return t, x.Side == nil || !x.Side()
}

// WouldAsk reports whether a planner would be asked about an exchange whose findings are set.
func WouldAsk(x *recovery.Exchange) bool {
	_, ok := troubleOf(x)
	return ok
}

// slotOf identifies the turn that the trouble ended with: equal for a client's retry.
func slotOf(x *recovery.Exchange) string {
	if x.Turn.Slot != "" {
		return x.Turn.Slot
	}
	list := x.Body.Messages()
	return strconv.FormatUint(trajectory.Hash(strconv.Itoa(len(list)), string(list[len(list)-1].Raw())), 36)
}

// maxRun limits how many turns run counts.
const maxRun = 60

// turnsInRow counts the turns at the end of the history that call this tool and no other.
func turnsInRow(x *recovery.Exchange, tool string) (n int) {
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
