package inspect

import (
	"hash/maphash"

	"github.com/rebound-llm/rebound/recovery"
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
	if n-first+1 < steps || h.surelyNew(first, n) {
		return l, false
	}
	s := seen{seed: maphash.MakeSeed(), results: map[uint64]bool{}, calls: map[uint64]bool{}}
	count, from := 0, first
	for k := first; k <= n; k++ {
		t := h.load(k)
		if len(t.steps) == 0 {
			continue
		}
		if h.progress(&s, t) {
			count = 0
			continue
		}
		if count++; count == 1 {
			from = k
		}
	}
	if count < steps {
		return l, false
	}
	l = h.loop(recovery.LoopNoProgress, count, from, n, from)
	l.Fingerprint = mark(string(l.Kind), string(h.list[l.From].Raw()))
	return l, true
}

// seen is what is known so far.
type seen struct {
	seed           maphash.Seed
	results, calls map[uint64]bool
}

// progress reports whether the turn brought anything new, and remembers it.
func (h *history) progress(known *seen, t *turn) bool {
	progress, changed := false, false
	for i := range t.steps {
		s := &t.steps[i]
		if s.waits() {
			progress = true
			continue
		}
		e := h.look(s)
		if !trivial(e.text) || e.middle != "" || len(e.media) > 1 {
			key := maphash.Comparable(known.seed, *e)
			progress = progress || !known.results[key]
			known.results[key] = true
		}
		call := maphash.Comparable(known.seed, [2]string{s.Tool, s.canonical()})
		if !known.calls[call] && !s.reads() && !s.judge().Failed {
			changed = true
		}
		known.calls[call] = true
	}
	if changed {
		clear(known.results)
		clear(known.calls)
	}
	return progress || changed
}

// maxProbe bounds the text that surelyNew searches for, in bytes.
const maxProbe = 32

// surelyNew reports whether the last turn has a result of which a telling part
// occurs nowhere in turns first to n-1: what most turns are, found out without
// decoding those.
func (h *history) surelyNew(first, n int) bool {
	t := h.load(n)
	before := h.body.Raw()[h.list[h.turns[first].start].Start:h.list[t.start].Start]
	for i := range t.steps {
		text := t.steps[i].essence().text
		if probe := plainRun(text); probe != "" && !trivial(text) && !contains(before, []byte(probe)) {
			return true
		}
	}
	return false
}

// plainRun is the longest part of a text whose bytes stand in JSON as they are,
// however often it is encoded; "" if that is short.
func plainRun(text string) string {
	best, from := "", 0
	for i := 0; i <= len(text) && len(best) < maxProbe; i++ {
		if i < len(text) && plainByte(text[i]) && i-from < maxProbe {
			continue
		}
		if i-from > len(best) {
			best = text[from:i]
		}
		if from = i + 1; i < len(text) && plainByte(text[i]) {
			from = i
		}
	}
	if len(best) < 8 {
		return ""
	}
	return best
}

func plainByte(c byte) bool {
	return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == ' ' || c == '_' || c == '.' || c == ',' || c == ':' || c == '(' || c == ')' || c == '='
}
