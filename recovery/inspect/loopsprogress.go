package inspect

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
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
	if n-first+1 < steps || h.surelyNew(first, n, steps) {
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
	s := seen{seed: maphash.MakeSeed(), results: map[uint64]bool{}, calls: map[uint64]bool{}}
	from = first
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
	return count, from
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
		e := h.look(s)
		if !h.rules.trivial(e.text) || e.middle != "" || len(e.media) > 1 {
			key := maphash.Comparable(known.seed, *e)
			progress = progress || !known.results[key]
			known.results[key] = true
		}
		progress = progress || s.awaits()
		call := maphash.Comparable(known.seed, [2]string{s.Tool, s.made.Canonical()})
		if !known.calls[call] && !s.made.Reads() && !s.judge().Failed {
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

// minProbe and maxProbe bound the text that fresh searches for, in bytes.
const (
	minProbe = 8
	maxProbe = 32
)

// surelyNew reports whether one of the last steps turns surely brought a result
// that is in none of those before it, back to the turn first. The cheapest is
// looked at, and the last.
func (h *history) surelyNew(first, n, steps int) bool {
	k := h.cheapest(first, n-steps+1, n)
	return h.fresh(first, k) || k != n && h.fresh(first, n)
}

// fullMessage is the size of a message, in bytes, from which its result surely says something.
const fullMessage = 256

// cheapest is the one of turns from to n for which the least has to be searched,
// back to the turn first: a large one, which the fewest others can hold, or an
// early one. It is n where all results are short.
func (h *history) cheapest(first, from, n int) int {
	var sizes [lookBack]int // of the turns' largest results
	best, least := n, -1
	for k := first; k <= n; k++ {
		for _, m := range h.List[h.turns[k].Answered:h.turns[k].End] {
			if m.Role == transcript.RoleTool {
				sizes[k] = max(sizes[k], m.End-m.Start)
			}
		}
		if k < from || sizes[k] < fullMessage {
			continue
		}
		search := 0
		for _, size := range sizes[first:k] {
			if size >= sizes[k]-fullMessage {
				search += size
			}
		}
		if least < 0 || search < least {
			best, least = k, search
		}
	}
	return best
}

// fresh reports whether turn n has a result of which a telling part occurs in no
// message of turns first to n-1: what most turns are, found out without decoding
// those. A part that is not in its own message is of how wrappers are read.
func (h *history) fresh(first, n int) bool {
	t := h.load(n)
	for i := range t.steps {
		s := &t.steps[i]
		if p, size := s.probe(); p != nil && bytes.Contains(h.List[s.Index].Raw(), p) && !h.mentioned(p, size, first, n) {
			return true
		}
	}
	return false
}

// probe is one for what the result says, nil where that is trivial,
// and the fewest bytes of a message that says the same: JSON is no shorter than
// its text, of which a wrapper repeats one line at most.
func (s *step) probe() (p []byte, size int) {
	if s.judged = s.judged || !s.read && s.glance(); s.raw != nil {
		return newProbe(s.raw), max(0, s.least-bytes.IndexByte(s.raw, '\\'))
	}
	text := s.essence().text
	if s.history.rules.trivial(text) {
		return p, 0
	}
	line, _, _ := strings.Cut(text, "\n")
	return newProbe(text), len(text) - len(line)
}

// mentioned reports whether the results in turns first to n-1 contain the probe,
// of those whose message has at least size bytes.
func (h *history) mentioned(p []byte, size, first, n int) bool {
	for _, m := range h.List[h.turns[first].Start:h.turns[n].Start] {
		if m.Role != transcript.RoleAssistant && m.End-m.Start >= size && bytes.Contains(m.Raw(), p) {
			return true
		}
	}
	return false
}

// newProbe is the longest part of a text whose bytes stand in JSON as they are,
// however often it is encoded; nil if that is short. The text may be JSON: what may
// belong to an escape is no part of it.
func newProbe[T string | []byte](text T) []byte {
	from, end := 0, 0
	for i := 0; i < len(text) && end-from < maxProbe; {
		run := i
		for i < len(text) && plainByte(text[i]) && i-run < maxProbe {
			i++
		}
		if i-run > end-from {
			from, end = run, i
		}
		if i == len(text) || plainByte(text[i]) {
			continue
		}
		if i++; text[i-1] == '\\' {
			i += escaped(text[i:])
		}
	}
	if end-from < minProbe {
		return nil
	}
	return []byte(text[from:end])
}

// escaped is the length of what may be an escape, after its backslash.
func escaped[T string | []byte](text T) int {
	if len(text) > 4 && text[0] == 'u' {
		return 5
	}
	return min(len(text), 1)
}

func plainByte(c byte) bool {
	return digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c == ' ' || c == '_' || c == '.' || c == ',' || c == ':' || c == '(' || c == ')' || c == '='
}
