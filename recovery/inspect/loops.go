package inspect

import (
	"encoding/binary"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// defaultNoProgress is the number of steps without anything new that is a loop.
const defaultNoProgress = 12

// maxRound is the number of turns of the longest round that is found: what is
// longer is found as lack of progress.
const maxRound = 4

// maxParallel bounds the calls of a turn that is compared: one with more is never the same.
const maxParallel = 32

// Loops is the repetitions that the history ends with: the same call with the
// same error or result in turns directly after each other, two to four turns
// that come round again without any change, a call in which nothing but a number
// grows and that brings nothing, the same text without a call, and, where none of
// these is found, many steps without anything new. It is nil without any.
//
// A turn counts once, whatever it repeats in itself. A new message of a person
// ends what came before it. What waits, or whose result changes, is polling.
// At most the last 60 turns are looked at; the time is linear in them.
func (r *Rules) Loops(b *transcript.Body) []recovery.Loop {
	l, _ := r.get()
	return l.readHistory(b).loops(defaultNoProgress)
}

func (h *history) loops(noProgress int) []recovery.Loop {
	t := h.last()
	if t == nil {
		return nil
	}
	if len(t.steps) == 0 {
		return h.monologue()
	}
	n := len(h.turns) - 1
	if h.spoken(n) {
		return nil
	}
	var l recovery.Loop
	ok := false
	for size := 1; size <= maxRound && !ok; size++ {
		l, ok = h.round(n, size)
	}
	if !ok {
		l, ok = h.counter(n)
	}
	if !ok {
		l, ok = h.noProgress(noProgress)
	}
	if !ok {
		return nil
	}
	return []recovery.Loop{l}
}

// round is the same size turns over and over.
func (h *history) round(n, size int) (l recovery.Loop, ok bool) {
	k := n // the first turn of those that are as the one a round before
	for k >= size && !h.interrupted(k-size, k) && h.repeats(k-size, k) {
		k--
	}
	count := (n-k)/size + 1
	if count < 2 {
		return l, false
	}
	kind := recovery.LoopSameResult
	over := h.over(n-size+1, n)
	for k := n - size + 1; k <= n; k++ {
		if !over && h.patient(k) {
			return l, false
		}
		if slices.ContainsFunc(h.turns[k].steps, func(s step) bool { return s.wrong() }) {
			kind = recovery.LoopSameError
		}
	}
	switch {
	case size == 2:
		kind = recovery.LoopAlternation
	case size > 2:
		kind = recovery.LoopCycle
	}
	if changed := h.changed(k, n); size == 1 && changed > 1 && count <= changed+1 && !over {
		return l, false
	}
	l = h.loop(kind, count, n-size*count+1, n, n-size+1)
	l.Fingerprint = h.print(kind, n-size+1, n)
	return l, true
}

// repeats reports whether all that turn k did had been done in turn j, with the
// same results. What turn j did besides must not have changed anything.
func (h *history) repeats(j, k int) bool {
	b := h.load(k)
	if len(b.steps) == 0 || len(b.steps) > maxParallel || !h.turns[j].loaded && h.differs(j, k) {
		return false
	}
	a := h.load(j)
	if len(a.steps) == 0 || len(a.steps) > maxParallel {
		return false
	}
	var known [maxParallel]bool
	for i := range b.steps {
		s, found := &b.steps[i], false
		for n := range a.steps {
			if r := &a.steps[n]; r.made.Same(&s.made) {
				known[n] = true
				found = found || h.sameResult(r, s)
			}
		}
		if !found {
			return false
		}
	}
	for n := range a.steps {
		if !known[n] && !a.steps[n].made.Reads() {
			return false
		}
	}
	return true
}

// differs reports cheaply whether turn j surely made none of turn k's calls.
func (h *history) differs(j, k int) bool {
	if h.made(j) > maxParallel {
		return true
	}
	made := h.gists(k)
	return !slices.ContainsFunc(h.gists(j), func(a gist) bool {
		return slices.ContainsFunc(made, func(b gist) bool { return a.same == b.same })
	})
}

// interrupted reports whether a person spoke after one of turns from to n-1.
func (h *history) interrupted(from, n int) bool {
	for k := from; k < n; k++ {
		if h.spoken(k) {
			return true
		}
	}
	return false
}

// loop describes turns from to n; the tools are those of the turns from tools on.
func (h *history) loop(kind recovery.LoopKind, count, from, n, tools int) recovery.Loop {
	l := recovery.Loop{Kind: kind, Count: count, From: h.turns[from].Start, To: h.turns[n].Answered - 1}
	for k := tools; k <= n; k++ {
		t := h.load(k)
		for i := range t.steps {
			s := &t.steps[i]
			l.To = max(l.To, s.Index)
			if !slices.Contains(l.Tools, s.Tool) {
				l.Tools = append(l.Tools, s.Tool)
			}
		}
	}
	return l
}

// print is a hash of the calls of turns from to n, without their order.
func (h *history) print(kind recovery.LoopKind, from, n int) uint64 {
	var prints []uint64
	for k := from; k <= n; k++ {
		for i := range h.turns[k].steps {
			s := &h.turns[k].steps[i]
			prints = append(prints, trajectory.Hash(s.Tool, s.made.Key()))
		}
	}
	return combined(string(kind), prints)
}

// combined is a hash of a word and of hashes, whose order and repetition do not count.
func combined(word string, prints []uint64) uint64 {
	slices.Sort(prints)
	raw := []byte(word)
	for _, p := range slices.Compact(prints) {
		raw = binary.BigEndian.AppendUint64(raw, p)
	}
	return trajectory.Hash(string(raw))
}
