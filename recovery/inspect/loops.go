package inspect

import (
	"encoding/binary"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// defaultNoProgress is the number of steps without anything new that is a loop.
const defaultNoProgress = 10

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
	list := h.repetitions(noProgress)
	if len(list) > 0 && list[0].Kind != recovery.LoopMonologue {
		if times, _ := h.asked(); times >= list[0].Count {
			return nil // a person asked for it
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
	if h.personSpoke(len(h.turns) - 1) {
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

// round is the same size turns over and over, in turn first or later.
func (h *history) round(first, size int) []recovery.Loop {
	n := len(h.turns) - 1
	k := n // the first turn of those that are as the one a round before
	for k >= first+size && h.repeats(k-size, k) {
		k--
	}
	count := (n-k)/size + 1
	if count < 2 || h.waiting(n-size+1) {
		return nil
	}
	kind := recovery.LoopSameResult
	for i := n - size + 1; i <= n; i++ {
		if slices.ContainsFunc(h.turns[i].steps, func(s step) bool { return s.wrong() }) {
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

// repeats reports whether all that turn k did had been done in turn j, with the
// same results. What turn j did besides must not have changed anything.
func (h *history) repeats(j, k int) bool {
	was, is := h.summary(j).steps, h.summary(k).steps
	if max(len(was), len(is)) > maxParallel || !slices.ContainsFunc(was, func(a trace) bool { return made(is, a.call) }) {
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
		if !made(is, was[n].call) && !a[n].made.Reads() {
			return false
		}
	}
	return true
}

// made reports whether a call is among those of a turn.
func made(steps []trace, call uint64) bool {
	return slices.ContainsFunc(steps, func(t trace) bool { return t.call == call })
}

// loop describes the turns from one on; the tools are those of the turns from tools on.
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

// print is a hash of the calls of the turns from one on, without their order, the same
// in every process.
func (h *history) print(kind recovery.LoopKind, from int) uint64 {
	var prints []uint64
	for k := from; k < len(h.turns); k++ {
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
