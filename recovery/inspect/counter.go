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

// counter is the same call with nothing but a higher number each time that fails in the
// same way.
func (h *history) counter(first int) []recovery.Loop {
	n := len(h.turns) - 1
	k := n
	for k > first && h.counts(k-1, k) {
		k--
	}
	if n-k+1 < minCounter {
		return nil
	}
	if h.patient(n) {
		return nil
	}
	s := &h.turns[n].steps[0]
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
	if len(a) != 1 || len(b) != 1 || a[0].Tool != b[0].Tool || !a[0].made.Reads() && !a[0].looksUp() {
		return false
	}
	if !h.past(j).steps[0].nothing || !h.past(k).steps[0].nothing {
		return false
	}
	x, y := tokens(a[0].Arguments), tokens(b[0].Arguments)
	if len(x) < len(y) {
		x, y = y, x
	}
	return len(y) > 3 && len(x)-len(y) < 3 && !slices.ContainsFunc(y, func(w string) bool { return !slices.Contains(x, w) })
}

// tokens are the words and numbers of a short text.
func tokens(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s[:min(len(s), maxPlain)]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// looksUp reports whether the tool searches.
func (s *step) looksUp() bool {
	return slices.ContainsFunc(trajectory.NameWords(s.Tool), func(w string) bool { return w == "search" || w == "find" || w == "query" || w == "lookup" })
}

// counts reports whether turn k is the one call of turn j, with a higher number and the
// same failure of a known kind.
func (h *history) counts(j, k int) bool {
	a, b := h.load(j).steps, h.load(k).steps
	if len(a) != 1 || len(b) != 1 || a[0].Tool != b[0].Tool {
		return false
	}
	f := b[0].judge()
	return f.Category != recovery.CategoryNone && a[0].judge().Fingerprint == f.Fingerprint && grows(a[0].made.Canonical(), b[0].made.Canonical())
}

// barren reports whether the result says in words that there is nothing.
func (s *step) barren() bool {
	text := s.essence().text
	if len(text) > maxPlain {
		return false
	}
	return s.history.rules.says(text, barren)
}
