package inspect

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// minCounter is the number of turns from which a rising number is a loop: fewer misses are normal work.
const minCounter = 4

// Limits of texts, in bytes: a text that says that there is nothing, and a text that only acknowledges
// something.
const (
	maxPlain   = 300
	maxReceipt = 160
)

// counter finds the same call with only a higher number each time, while the results say the same or nothing:
// pages after the last one, ids that do not exist.
func (h *history) counter(first int) []recovery.Loop {
	n := len(h.turns) - 1
	k := n
	for k > first && h.counts(k-1, k) {
		k--
	}
	if n-k+1 < minCounter {
		return nil
	}
	s := &h.turns[n].steps[0]
	if h.waiting(n) && !s.call.Idles() {
		return nil
	}
	l := h.loop(recovery.LoopCounter, n-k+1, k, n)
	l.New = l.Count == minCounter
	l.Fingerprint = trajectory.Hash(string(l.Kind), s.Tool, unnumbered(s.call.Canonical()))
	return []recovery.Loop{l}
}

// rephrasing finds a search without hits that is repeated with mostly the same words.
func (h *history) rephrasing(first int) []recovery.Loop {
	n := len(h.turns) - 1
	k := n
	for k > first && h.rephrases(k-1, k) {
		k--
	}
	if n-k+1 < minCounter {
		return nil
	}
	l := h.loop(recovery.LoopRephrasing, n-k+1, k, n)
	l.New = l.Count == minCounter
	l.Fingerprint = trajectory.Hash(string(l.Kind), l.Tools[0], string(h.List[l.From].Raw()))
	return []recovery.Loop{l}
}

// rephrases reports whether turn k repeats the single call of turn j with its words in another order, or with
// one or two words more or less, and both found nothing.
func (h *history) rephrases(j, k int) bool {
	a, b := h.load(j).steps, h.load(k).steps
	if len(a) != 1 || len(b) != 1 || a[0].Tool != b[0].Tool {
		return false
	}
	x, y := tokens(a[0].Arguments), tokens(b[0].Arguments)
	if len(x) < len(y) {
		x, y = y, x
	}
	if len(y) <= 3 || len(x)-len(y) >= 3 || slices.ContainsFunc(y, func(w string) bool { return !slices.Contains(x, w) }) {
		return false
	}
	nothing := func(turn int, s *step) bool { return h.summary(turn).steps[0].nothing || s.saysNothing() }
	return a[0].call.Reads() && nothing(j, &a[0]) && nothing(k, &b[0])
}

// tokens returns the words and numbers of a short text.
func tokens(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s[:min(len(s), maxPlain)]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// counts reports whether turn k repeats the single call of turn j with a higher number and an equivalent result.
func (h *history) counts(j, k int) bool {
	a, b := h.load(j).steps, h.load(k).steps
	if len(a) != 1 || len(b) != 1 || a[0].Tool != b[0].Tool {
		return false
	}
	g, ok := h.rules.growthOf(a[0].call.Canonical(), b[0].call.Canonical())
	return ok && b[0].addsNothing(&a[0], &g)
}

// addsNothing reports whether the second of two calls, between which a number grew, brought no more than the
// first: the same failure of a known category, a text that says that there is nothing, or, if the number selects
// a part or an amount of one thing, the same text.
func (s *step) addsNothing(first *step, g *growth) bool {
	f, e := first.judge(), s.judge()
	if f.Failed != e.Failed || f.Category != e.Category {
		return false
	}
	if f.Category != recovery.CategoryNone {
		return g.explains(f.Line, e.Line)
	}
	x, y := first.essence(), s.essence()
	if s.saysNothing() || f.Failed && g.part() || s.emptyValue(g) {
		return x.media == y.media && g.explains(x.text, y.text)
	}
	return *x == *y && s.answers(g)
}

// answers reports whether the result of a call for a part of something is that part, and not only an
// acknowledgement.
func (s *step) answers(g *growth) bool {
	size := len(s.essence().text)
	if s.call.Reads() {
		return g.part() && (size == 0 || size >= maxGesture)
	}
	return g.pages() && size > maxReceipt
}

// saysNothing reports whether the result says that there is nothing.
func (s *step) saysNothing() bool {
	text := s.essence().text
	if len(text) > maxPlain {
		return false
	}
	said := s.history.rules.submatch(text, barren)
	return said != nil && !s.history.rules.namesTrouble(said[0])
}

// emptyValue reports whether the call read an empty value, or only waited.
func (s *step) emptyValue(g *growth) bool {
	text := s.essence().text
	if s.call.Idles() {
		return true
	}
	if text == "" || !s.history.rules.trivial(text) || s.call.Writes() || s.history.rules.namesTrouble(text) {
		return false
	}
	// an object that is read by its number may have an empty list among other fields
	thing := text[0] == '{' && strings.Count(text, ":") > 1
	return (text == "null" || text[0] == '[' || text[0] == '{') && (g.pages() || s.call.Reads() && !thing)
}

// namesTrouble reports whether a text names something unwanted, whose absence is a success.
func (l *lists) namesTrouble(text string) bool {
	text = strings.ToLower(text)
	for w := range l.words["troubles"] {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
