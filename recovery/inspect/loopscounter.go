package inspect

import (
	"slices"
	"strings"

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

// maxCounted bounds the arguments in which numbers are compared, in bytes.
const maxCounted = 4 << 10

// counter is the same call with nothing but a higher number each time, where what
// comes back says the same or nothing: pages behind the last one, ids that are not there.
func (h *history) counter(n int) (l recovery.Loop, ok bool) {
	if n+1 < minCounter {
		return l, false
	}
	k := n
	for k > 0 && !h.spoken(k-1) && h.counts(k-1, k) {
		k--
	}
	if n-k+1 < minCounter {
		return l, false
	}
	s := &h.turns[n].steps[0]
	if h.patient(n) && !s.made.Idles() {
		return l, false
	}
	l = h.loop(recovery.LoopCounter, n-k+1, k, n, n)
	l.Fingerprint = trajectory.Hash(string(l.Kind), s.Tool, unnumbered(s.made.Canonical()))
	return l, true
}

// counts reports whether turn k is the one call of turn j, with a higher number
// and an outcome that is no other.
func (h *history) counts(j, k int) bool {
	b := h.load(k)
	if len(b.steps) != 1 || len(b.steps[0].Arguments) > maxCounted {
		return false
	}
	a := h.load(j)
	if len(a.steps) != 1 || a.steps[0].Tool != b.steps[0].Tool || len(a.steps[0].Arguments) > maxCounted {
		return false
	}
	r, s := &a.steps[0], &b.steps[0]
	if r.Arguments == s.Arguments {
		return false
	}
	g, ok := h.rules.growthOf(r.made.Canonical(), s.made.Canonical())
	return ok && h.sameOutcome(r, s, &g)
}

// sameOutcome reports whether the second of two calls, between which something
// grew, brought no more than the first: the same failure of a known kind, a text
// that says that there is nothing, or, where the number says which part or how
// much of one thing is read, the same text.
func (h *history) sameOutcome(a, b *step, g *growth) bool {
	f, e := a.judge(), b.judge()
	if f.Failed != e.Failed {
		return false
	}
	if f.Failed && f.Category != recovery.CategoryNone && f.Category == e.Category {
		return f.Fingerprint == e.Fingerprint || g.explains(trajectory.Steady(f.Line, true), trajectory.Steady(e.Line, true))
	}
	x, y := h.look(a), h.look(b)
	if x.media != y.media || x.middle != y.middle || !f.Failed && h.rules.says(y.text[:min(len(y.text), maxStatus)], goesOn) {
		return false
	}
	if len(x.text) <= maxPlain && len(y.text) <= maxPlain && (b.barren() || f.Failed && g.part() || b.vain(g)) {
		return g.explains(trajectory.Steady(x.text, true), trajectory.Steady(y.text, true))
	}
	return x.text == y.text && b.tells(g)
}

// mayTell reports whether the call is for a part of something, or for some of it.
func (s *step) mayTell(g *growth) bool {
	return g.pages() || g.part() && s.made.Reads()
}

// tells reports whether the result of a call for a part of something, or for some
// of it, is what was asked for and not only a receipt.
func (s *step) tells(g *growth) bool {
	if !s.mayTell(g) {
		return false
	}
	size := len(s.essence().text)
	if s.made.Reads() {
		return size == 0 || size >= maxGesture || trajectory.KindOf(s.Tool) == trajectory.Shell
	}
	return size > maxReceipt
}

// barren reports whether the result says in words that there is nothing.
func (s *step) barren() bool {
	text := s.essence().text
	if len(text) > maxPlain {
		return false
	}
	said := s.history.rules.submatch(text, barren)
	return said != nil && !s.history.rules.troubled(said[0])
}

// vain reports whether the call got an empty value of what it reads, or lets only time pass.
func (s *step) vain(g *growth) bool {
	text := s.essence().text
	if s.made.Idles() {
		return true
	}
	if text == "" || !s.history.rules.trivial(text) || s.made.Writes() || s.history.rules.troubled(text) {
		return false
	}
	// A thing that is read by its number may have an empty list among else.
	thing := text[0] == '{' && strings.Count(text, ":") > 1
	return (text == "null" || text[0] == '[' || text[0] == '{') && (g.pages() || s.made.Reads() && (g.part() || !thing))
}

// troubled reports whether a text names something that is good not to find.
func (l *lists) troubled(text string) bool {
	text = strings.ToLower(text)
	for w := range l.words["troubles"] {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// growth is what grew from one call to the next.
type growth struct {
	rules  *lists
	before string // what stands before the first number
	by     []float64
}

// maxGrowing is the number of numbers that may grow: a range has two.
const maxGrowing = 2

// growthOf compares two arguments that differ in higher numbers only. A number in
// a name is none, nor is a day or a time: that passes by itself.
func (l *lists) growthOf(a, b string) (g growth, ok bool) {
	g.rules = l
	same := trajectory.CompareNumbers(a, b, func(i int, x, y string) bool {
		d := value(y) - value(x)
		if !(d > 0) || len(g.by) == maxGrowing || i > 0 && letter(a[i-1]) || dotted(a, i, i+len(x)) || dated(a, i, i+len(x)) || epoch(value(x)) {
			return false
		}
		if g.by == nil {
			g.before = a[:i]
		}
		g.by = append(g.by, d)
		return true
	})
	return g, same && g.by != nil
}

// explains reports whether two texts differ in nothing but numbers that grew as
// those of the calls did.
func (g *growth) explains(a, b string) bool {
	return trajectory.CompareNumbers(a, b, func(_ int, x, y string) bool { return slices.Contains(g.by, value(y)-value(x)) })
}

// pages reports whether the number is one that lists and files are read with.
func (g *growth) pages() bool {
	return g.named("pages")
}

// part reports whether the number says which part or how much is asked for.
func (g *growth) part() bool {
	return g.pages() || g.named("parts")
}

// named reports whether the first number is called by one of the words.
func (g *growth) named(list string) bool {
	return slices.ContainsFunc(wordsBefore(g.before), func(w string) bool { return g.rules.words[list][w] })
}
