package inspect

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// minCounter is the number of turns that is a counter: a few misses are work.
const minCounter = 4

// Bounds of texts in bytes: one that says in words that there is nothing, and one
// that says no more than that something was done, by a tool or by one that reads.
const (
	maxPlain   = 300
	maxReceipt = 160
)

// counter is the same call with nothing but a higher number each time, where what
// comes back says the same or nothing: pages behind the last one, ids that are not there.
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
	if h.waiting(n) && !s.made.Idles() {
		return nil
	}
	l := h.loop(recovery.LoopCounter, n-k+1, k, n)
	l.New = l.Count == minCounter
	l.Fingerprint = trajectory.Hash(string(l.Kind), s.Tool, unnumbered(s.made.Canonical()))
	return []recovery.Loop{l}
}

// rephrasing is a search that finds nothing, made again with mostly the same words.
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

// rephrases reports whether turn k is the one call of turn j with its words in another
// order, or one or two more or less, and both found nothing.
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
	return (a[0].made.Reads() || a[0].looksUp()) && nothing(j, &a[0]) && nothing(k, &b[0])
}

// tokens are the words and numbers of a short text.
func tokens(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s[:min(len(s), maxPlain)]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// looksUp reports whether the tool searches.
func (s *step) looksUp() bool {
	return slices.ContainsFunc(trajectory.NameWords(s.Tool), func(w string) bool { return w == "search" || w == "find" || w == "query" || w == "lookup" })
}

// counts reports whether turn k is the one call of turn j, with a higher number
// and an outcome that is no other.
func (h *history) counts(j, k int) bool {
	a, b := h.load(j).steps, h.load(k).steps
	if len(a) != 1 || len(b) != 1 || a[0].Tool != b[0].Tool {
		return false
	}
	g, ok := h.rules.growthOf(a[0].made.Canonical(), b[0].made.Canonical())
	return ok && b[0].addsNothing(&a[0], &g)
}

// addsNothing reports whether the second of two calls, between which something
// grew, brought no more than the first: the same failure of a known kind, a text
// that says that there is nothing, or, where the number says which part or how
// much of one thing is read, the same text.
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

// answers reports whether the result of a call for a part of something is that part, and not only a receipt.
func (s *step) answers(g *growth) bool {
	size := len(s.essence().text)
	if s.made.Reads() {
		return g.part() && (size == 0 || size >= maxGesture)
	}
	return g.pages() && size > maxReceipt
}

// saysNothing reports whether the result says in words that there is nothing.
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
	if s.made.Idles() {
		return true
	}
	if text == "" || !s.history.rules.trivial(text) || s.made.Writes() || s.history.rules.namesTrouble(text) {
		return false
	}
	// A thing that is read by its number may have an empty list among else.
	thing := text[0] == '{' && strings.Count(text, ":") > 1
	return (text == "null" || text[0] == '[' || text[0] == '{') && (g.pages() || s.made.Reads() && !thing)
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
