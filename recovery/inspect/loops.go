package inspect

import (
	"encoding/binary"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// defaultNoProgress is the number of steps without anything new that counts as a loop.
const defaultNoProgress = 10

// maxRound limits the turns of a repeated round; longer rounds are found as lack of progress.
const maxRound = 4

// maxParallel limits the calls of a turn that is compared; turns with more are never equal.
const maxParallel = 32

// Loops returns the repetitions at the end of the history: the same call with the same error or result in
// consecutive turns, a round of two to four turns that repeats without any change, a call in which only a number
// grows and that brings nothing, the same text without a call, and, if none of these is found, many steps
// without anything new. It returns nil if there are none.
//
// A turn counts once, whatever it repeats in itself. A user's new message ends all repetitions. Waiting calls,
// and calls whose results change, are polling and no loop. It inspects at most the last 60 turns, in time linear
// in them.
func (r *Rules) Loops(b *transcript.Body) []recovery.Loop {
	l, _ := r.get()
	return l.readHistory(b).loops(defaultNoProgress)
}

func (h *history) loops(noProgress int) []recovery.Loop {
	list := h.repetitions(noProgress)
	if len(list) > 0 && list[0].Kind != recovery.LoopMonologue {
		if times, _ := h.askedToRepeat(); times >= list[0].Count {
			return nil // the user asked for it
		}
	}
	return list
}

func (h *history) repetitions(noProgress int) []recovery.Loop {
	t := h.last()
	if t == nil {
		return nil
	}
	if len(t.steps) == 0 {
		return h.monologue()
	}
	if h.userSpoke(len(h.turns) - 1) {
		return nil
	}
	first := h.since(lookBack)
	for size := 1; size <= maxRound; size++ {
		if l := h.round(first, size); l != nil {
			return l
		}
	}
	if l := h.counter(first); l != nil {
		return l
	}
	if l := h.rephrasing(first); l != nil {
		return l
	}
	return h.noProgress(first, noProgress)
}

// round finds a repeated round of size turns, in turn first or later.
func (h *history) round(first, size int) []recovery.Loop {
	n := len(h.turns) - 1
	k := n // the first turn that equals the one a round before
	for k >= first+size && h.repeats(k-size, k) {
		k--
	}
	count := (n-k)/size + 1
	if count < 2 || h.waiting(n-size+1) {
		return nil
	}
	kind := recovery.LoopSameResult
	for i := n - size + 1; i <= n; i++ {
		if slices.ContainsFunc(h.turns[i].steps, func(s step) bool { return s.seemsFailed() }) {
			kind = recovery.LoopSameError
		}
	}
	switch size {
	case 1:
		if changed := h.changed(first, k, n); changed > 1 && count <= changed+1 {
			return nil
		}
	case 2:
		kind = recovery.LoopAlternation
	default:
		kind = recovery.LoopCycle
	}
	l := h.loop(kind, count, n-size*count+1, n-size+1)
	l.New = (n-k+1)%size == 1%size
	l.Fingerprint = h.print(kind, n-size+1)
	return []recovery.Loop{l}
}

// repeats reports whether turn j made all calls of turn k with the same results, and its other calls changed
// nothing.
func (h *history) repeats(j, k int) bool {
	was, is := h.summary(j).steps, h.summary(k).steps
	if max(len(was), len(is)) > maxParallel || !slices.ContainsFunc(was, func(a trace) bool { return containsCall(is, a.call) }) {
		return false
	}
	a, b := h.load(j).steps, h.load(k).steps
	for i := range is {
		found := false
		for n := range was {
			found = found || was[n].call == is[i].call && a[n].outcome() == b[i].outcome()
		}
		if !found {
			return false
		}
	}
	for n := range was {
		if !containsCall(is, was[n].call) && !a[n].call.Reads() {
			return false
		}
	}
	return true
}

// containsCall reports whether a call is among those of a turn.
func containsCall(steps []trace, call uint64) bool {
	return slices.ContainsFunc(steps, func(t trace) bool { return t.call == call })
}

// loop describes a loop over the turns from one on; its tools are those of the turns from tools on.
func (h *history) loop(kind recovery.LoopKind, count, from, tools int) recovery.Loop {
	n := len(h.turns) - 1
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

// print returns a hash of the calls of the turns from one on, independent of their order and equal in every
// process.
func (h *history) print(kind recovery.LoopKind, from int) uint64 {
	var prints []uint64
	for k := from; k < len(h.turns); k++ {
		for i := range h.turns[k].steps {
			s := &h.turns[k].steps[i]
			prints = append(prints, trajectory.Hash(s.Tool, s.call.Key()))
		}
	}
	return combined(string(kind), prints)
}

// combined returns a hash of a word and a set of hashes, independent of order and repetition.
func combined(word string, prints []uint64) uint64 {
	slices.Sort(prints)
	raw := []byte(word)
	for _, p := range slices.Compact(prints) {
		raw = binary.BigEndian.AppendUint64(raw, p)
	}
	return trajectory.Hash(string(raw))
}
