package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// From how many on something is due: the same failure, failures of one kind within
// kindTurns turns, and, of both and of loops, where the agent is stuck.
const (
	sameAgain = 2
	sameStuck = 3
	kindAgain = 3
	kindStuck = 5
	kindTurns = 8
)

// climb is the ladder so far: what the turns of the history failed in.
type climb struct {
	same  map[uint64]int              // failures since a person spoke, by fingerprint
	kinds map[recovery.Category][]int // the turns in which a kind failed, since then
	given map[recovery.Category]int   // notes that were due
}

// ladder is where the exchange stands whose results and loops are known.
func (h *history) ladder(x *recovery.Exchange, least float64) (l recovery.Ladder) {
	c := climb{same: map[uint64]int{}, kinds: map[recovery.Category][]int{}, given: map[recovery.Category]int{}}
	for k := range h.turns {
		if k > 0 && h.spoken(k-1) {
			clear(c.same)
			clear(c.kinds)
		}
		steps := h.past(k).steps
		i := subject(steps, least)
		if i < 0 {
			l = recovery.Ladder{}
			continue
		}
		l = c.take(k, &steps[i].verdict)
		if k == len(h.turns)-1 {
			l.Failure = &x.Results[i]
		}
	}
	if h.spoken(len(h.turns) - 1) {
		return recovery.Ladder{}
	}
	for i := range x.Loops {
		if x.Loops[i].Count >= sameStuck {
			l.Rung = recovery.RungStuck
		}
		l.Rung = max(l.Rung, recovery.RungAgain)
	}
	if l.Rung > recovery.RungNone && x.Progress.Stuck && x.Progress.Steps >= progressSteps-2 {
		l.Rung = recovery.RungStuck
	}
	return l
}

// take adds a failure of turn k.
func (c *climb) take(k int, f *recovery.ToolFailure) recovery.Ladder {
	c.same[f.Fingerprint]++
	c.kinds[f.Category] = append(c.kinds[f.Category], k)
	l := recovery.Ladder{Rung: recovery.RungFirst, Same: c.same[f.Fingerprint], Given: c.given[f.Category]}
	for _, at := range c.kinds[f.Category] {
		if k-at < kindTurns {
			l.Kind++
		}
	}
	switch {
	case l.Same >= sameStuck, l.Kind >= kindStuck:
		l.Rung = recovery.RungStuck
	case l.Same >= sameAgain, l.Kind >= kindAgain:
		l.Rung = recovery.RungAgain
	}
	if l.Rung >= recovery.RungAgain {
		c.given[f.Category]++
	}
	return l
}

// subject is the step of a turn that help is for: the most certain of a known kind, else
// the first where all failed; -1 where nothing failed that matters.
func subject(steps []trace, least float64) int {
	best, all := -1, len(steps) > 0
	for i := range steps {
		f := &steps[i].verdict
		all = all && f.Failed
		if f.Failed && f.Category != recovery.CategoryNone && f.Confidence >= least && (best < 0 || f.Confidence > steps[best].verdict.Confidence) {
			best = i
		}
	}
	if best < 0 && all {
		return slices.IndexFunc(steps, func(t trace) bool { return t.verdict.Failed })
	}
	return best
}
