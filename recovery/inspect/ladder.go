package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// Counts that raise the rung: of the same failure, and of failures of one kind within kindTurns turns. sameStuck
// also applies to loops.
const (
	sameAgain = 2
	sameStuck = 3
	kindAgain = 3
	kindStuck = 5
	kindTurns = 8
	// stuckSteps is how many steps without progress make an agent stuck without further evidence.
	stuckSteps = 10
)

// failureCounts counts the failures of the turns so far, for the ladder.
type failureCounts struct {
	same  map[uint64]int   // turns with the failure, by fingerprint
	kinds map[string][]int // turns with a failure of the kind
	given map[string]int   // notes that were due for the kind
	met   map[string]int   // failures of the kind in the session
	// volatile holds the failures that a change may fix, by fingerprint.
	volatile map[uint64]bool
}

// ladder returns the rung of an exchange whose results, loops and progress are set.
func (h *history) ladder(x *recovery.Exchange, least float64) (l recovery.Ladder) {
	n := len(h.turns) - 1
	if h.userSpoke(n) && len(h.last().steps) > 0 {
		return l
	}
	c := failureCounts{same: map[uint64]int{}, kinds: map[string][]int{}, given: map[string]int{}, met: map[string]int{}, volatile: map[uint64]bool{}}
	for k := range h.turns {
		if k > 0 && h.userSpoke(k-1) {
			clear(c.same)
			clear(c.kinds)
		}
		l = recovery.Ladder{}
		p := h.summary(k)
		if i := subject(p.steps, least); i >= 0 {
			l = c.add(k, &p.steps[i].verdict)
			if k == n {
				l.Failure = &x.Results[i]
			}
		} else if p.changes {
			c.forgetVolatile()
		}
	}
	for i := range x.Loops {
		if l.Rung = max(l.Rung, recovery.RungAgain); x.Loops[i].Count >= sameStuck {
			l.Rung = recovery.RungStuck
		}
	}
	if l.Rung > recovery.RungNone && x.Progress.Stuck && x.Progress.Steps >= stuckSteps {
		l.Rung = recovery.RungStuck
	}
	return l
}

// add counts a failure of turn k and returns the resulting ladder.
func (c *failureCounts) add(k int, f *recovery.ToolFailure) recovery.Ladder {
	kind, known := f.Chain(), f.Category != recovery.CategoryNone
	c.same[f.Fingerprint]++
	c.volatile[f.Fingerprint] = !known || volatileKind(kind)
	l := recovery.Ladder{Rung: recovery.RungFirst, Same: c.same[f.Fingerprint], Met: c.met[kind], Given: c.given[kind], Kind: 1}
	c.met[kind]++
	for _, at := range c.kinds[kind] {
		if k-at < kindTurns {
			l.Kind++
		}
	}
	c.kinds[kind] = append(c.kinds[kind], k)
	alike := known && f.Category != recovery.SyntaxError // errors in code have nothing in common but the word
	switch {
	case l.Same >= sameStuck, alike && l.Kind >= kindStuck:
		l.Rung = recovery.RungStuck
	case l.Same >= sameAgain, alike && l.Kind >= kindAgain:
		l.Rung = recovery.RungAgain
	}
	if l.Rung >= recovery.RungAgain {
		c.given[kind]++
	}
	return l
}

// volatileKind reports whether a failure of the kind with the same words may be a new one after a change.
func volatileKind(kind string) bool {
	switch kind {
	case string(recovery.CategoryNone), string(recovery.SyntaxError), string(recovery.ToolTimeout):
		return true
	}
	return false
}

// forgetVolatile drops the failures that a change may have fixed.
func (c *failureCounts) forgetVolatile() {
	for kind := range c.kinds {
		if volatileKind(kind) {
			delete(c.kinds, kind)
		}
	}
	for print := range c.same {
		if c.volatile[print] {
			delete(c.same, print)
		}
	}
}

// subject returns the index of the result that a note is about: the most certain failure of a known category, or
// else the first if all results failed; -1 if there is none.
func subject(steps []trace, least float64) int {
	best, all := -1, len(steps) > 0
	for i := range steps {
		f := &steps[i].verdict
		all = all && f.Failed
		certain := f.Category != recovery.CategoryNone && f.Confidence >= least || f.Chain() == recovery.EditFailed
		if f.Failed && certain && (best < 0 || f.Confidence > steps[best].verdict.Confidence) {
			best = i
		}
	}
	if best < 0 && all {
		return slices.IndexFunc(steps, func(t trace) bool { return t.verdict.Failed })
	}
	return best
}
