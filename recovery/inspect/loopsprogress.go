package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// noProgress is a number of steps at the end of the history that brought
// nothing: each repeated a call or only looked, and each result was known or
// empty. What may have changed something makes all results new again, and so
// does a person's message.
func (h *history) noProgress(steps int) (l recovery.Loop, ok bool) {
	n := len(h.turns) - 1
	if steps <= 0 || n+1 < steps {
		return l, false
	}
	first := n
	for first > 0 && !h.spoken(first-1) {
		first--
	}
	if n-first+1 < steps {
		return l, false
	}
	count, from := h.idle(first, n)
	if count < steps {
		return l, false
	}
	l = h.loop(recovery.LoopNoProgress, count, from, n, from)
	l.Fingerprint = trajectory.Hash(string(l.Kind), string(h.List[l.From].Raw()))
	return l, true
}

// idle counts the turns at the end of first to n that brought nothing, and says
// with which they begin.
func (h *history) idle(first, n int) (count, from int) {
	s := seen{results: map[uint64]bool{}, calls: map[uint64]bool{}}
	from = first
	for k := first; k <= n; k++ {
		gists := h.gists(k)
		if len(gists) == 0 {
			continue
		}
		if s.progress(gists) {
			count = 0
			continue
		}
		if count++; count == 1 {
			from = k
		}
	}
	return count, from
}

// seen is what is known so far, by the hashes of gists.
type seen struct {
	results, calls map[uint64]bool
}

// progress reports whether a turn brought anything new, and remembers it.
func (known *seen) progress(turn []gist) bool {
	progress, changed := false, false
	for _, g := range turn {
		if !g.nothing {
			progress = progress || !known.results[g.said]
			known.results[g.said] = true
		}
		progress = progress || g.awaits
		changed = changed || g.changes && !known.calls[g.call]
		known.calls[g.call] = true
	}
	if changed {
		clear(known.results)
		clear(known.calls)
	}
	return progress || changed
}
