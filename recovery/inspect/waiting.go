package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// taggedStatus matches the beginning of an agent's report about a background command.
var taggedStatus = recovery.NewPattern(`^\s*(?:<\w+>[^<]{0,80}</\w+>\s*){0,3}<status>\w+</status>`)

// maxStatus limits a text that reports the state of something, in bytes.
const maxStatus = 1000

// awaits reports whether the step only waits, or asks for the state of something that proceeds by itself, so
// that repeating it is waiting. Failures that waiting cannot fix do not count.
func (s *step) awaits() bool {
	f := s.judge()
	if f.Failed && permanent(f.Category) {
		return false
	}
	if s.call.Awaits() && !s.finished() {
		return true
	}
	text := s.content() // with its wrapper, which may contain the state
	if len(text) >= maxStatus {
		text = taggedStatus.FindString(text[:maxStatus])
	}
	return s.history.rules.says(text, goesOn) && !s.call.Writes() && (!f.Failed || s.call.Reads())
}

// finished reports whether the result says that the awaited thing has ended.
func (s *step) finished() bool {
	text, l := s.essence().text, s.history.rules
	return len(text) < maxStatus && l.says(text, settled) && !l.says(text, goesOn)
}

// permanent reports whether waiting cannot fix failures of a category.
func permanent(c recovery.Category) bool {
	switch c {
	case recovery.CommandNotFound, recovery.ToolNotFound, recovery.PermissionDenied, recovery.InvalidArguments, recovery.SyntaxError, recovery.DiskFull:
		return true
	}
	return false
}

// waits reports whether a turn waits: one of its calls does, and no other call failed.
func (t *turn) waits() bool {
	waits := false
	for i := range t.steps {
		s := &t.steps[i]
		if s.awaits() {
			waits = true
		} else if s.judge().Failed {
			return false
		}
	}
	return waits
}

// waiting reports whether one of the turns from the given one on waits for something that may change by itself,
// or only makes gestures, and nothing that they ask for has ended: repeating such calls is no loop.
func (h *history) waiting(from int) (patient bool) {
	for k := from; k < len(h.turns); k++ {
		steps := h.load(k).steps
		patient = patient || h.summary(k).waits || !slices.ContainsFunc(steps, func(s step) bool { return !s.onlyAcknowledged() })
		if slices.ContainsFunc(steps, func(s step) bool { return (s.call.Awaits() || s.call.Reads()) && s.finished() }) {
			return false
		}
	}
	return patient
}

// maxGesture limits the text of an acknowledgement, in bytes.
const maxGesture = 40

// onlyAcknowledged reports whether the call is a gesture, such as a click, whose result is only an
// acknowledgement.
func (s *step) onlyAcknowledged() bool {
	for _, w := range trajectory.NameWords(s.Tool) {
		if s.history.rules.words["gestures"][w] {
			return len(s.essence().text) < maxGesture && !s.judge().Failed && !s.saysNothing()
		}
	}
	return false
}

// changed counts how often the result of the call in turns k to n differed from the one before, in earlier turns
// from first on without any other call between: such a result changes by itself, as that of a flaky test does,
// and may change again.
func (h *history) changed(first, k, n int) (times int) {
	call := h.summary(n).steps
	if len(call) != 1 {
		return 0
	}
	last := h.load(n).steps[0].outcome()
	for k--; k >= first && len(h.summary(k).steps) == 1 && h.summary(k).steps[0].call == call[0].call; k-- {
		if was := h.load(k).steps[0].outcome(); was != last {
			last = was
			times++
		}
	}
	return times
}
