package inspect

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery"
)

// minCycle and maxCycle bound the turns of a round: two are an alternation, and
// what is longer is found as lack of progress.
const (
	minCycle = 3
	maxCycle = 4
)

// cycle is A-B-C-A-B-C: three or four turns that come round again without any change.
func (h *history) cycle(n int) (l recovery.Loop, ok bool) {
	for size := minCycle; size <= maxCycle && !ok; size++ {
		l, ok = h.rounds(n, size)
	}
	return l, ok
}

// rounds is the same size turns over and over.
func (h *history) rounds(n, size int) (l recovery.Loop, ok bool) {
	k := n // the first turn of those that are as the one a round later
	for k >= size && !h.interrupted(k-size, k) && !h.lacks(k-size, k) && h.repeats(k-size, k) {
		k--
	}
	count := (n-k)/size + 1
	if count < 2 || !h.settled(n-size+1, n, count) {
		return l, false
	}
	l = h.loop(recovery.LoopCycle, count, n-size*count+1, n, n-size+1)
	l.Fingerprint = h.print(l.Kind, n-size+1, n)
	return l, true
}

// maxWords is the number of words of a call that are looked for, and minWord the
// fewest bytes of one.
const (
	maxWords = 16
	minWord  = 3
)

// lacks reports cheaply whether turn j surely did not make the first call of turn
// k: a word of its arguments occurs nowhere. A number that is spelled in another
// way counts as another.
func (h *history) lacks(j, k int) bool {
	t := h.load(k)
	if len(t.steps) == 0 {
		return true
	}
	of := &h.turns[j]
	raw := h.body.Raw()[h.list[of.start].Start:h.list[of.answered-1].End]
	arguments := t.steps[0].Arguments
	for i, n := 0, 0; i < len(arguments) && n < maxWords; i++ {
		from := i
		for i < len(arguments) && wordByte(arguments[i]) && arguments[i] < 0x80 { // what is beyond may be escaped
			i++
		}
		if i-from < minWord {
			continue
		}
		if n++; !bytes.Contains(raw, []byte(arguments[from:min(i, from+maxProbe)])) {
			return true
		}
	}
	return false
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

// settled reports whether a round of turns from to n that was made count times
// is a loop: it does not wait, met no refusal by a rule of a business, and, the
// second time, neither failed to reach a host nor looks how something gets on.
func (h *history) settled(from, n, count int) bool {
	for k := from; k <= n; k++ {
		if h.patient(k) || h.refused(k) || count == 2 && h.hopeful(k) {
			return false
		}
	}
	return true
}

// hopeful reports whether a result of turn k may be another one the next time.
func (h *history) hopeful(k int) bool {
	t := h.load(k)
	for i := range t.steps {
		s := &t.steps[i]
		if wrong := s.wrong(); wrong && passing(s.judge().Category) || !wrong && underWay(s.essence().text) {
			return true
		}
	}
	return false
}
