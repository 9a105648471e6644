package inspect

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// defaultNoProgress is the number of steps without anything new that is a loop.
const defaultNoProgress = 12

// maxParallel bounds the calls of a turn that are compared.
const maxParallel = 32

// Loops is the repetitions that the history ends with: the same call with the
// same error or result in turns directly after each other, two to four calls
// that take turns without any change, a call in which nothing but a number grows
// and that brings nothing, the same text without a call, and, where none of these
// is found, many steps without anything new. It is nil without any.
//
// A turn counts once, whatever it repeats in itself. A new message of a person
// ends what came before it. What waits, or whose result changes, is polling.
// At most the last 60 turns are looked at; the time is linear in them.
func Loops(b *transcript.Body) []recovery.Loop {
	return readHistory(b).loops(defaultNoProgress)
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
	l, ok := h.repetition(n)
	if !ok {
		l, ok = h.alternation(n)
	}
	if !ok {
		l, ok = h.cycle(n)
	}
	if !ok {
		l, ok = h.counter(n)
	}
	if !ok {
		l, ok = h.noProgress(noProgress)
	}
	if !ok || l.Kind != recovery.LoopCounter && h.refused(n) || l.Kind == recovery.LoopAlternation && h.refused(n-1) {
		return nil
	}
	return []recovery.Loop{l}
}

// refused reports whether what a turn met is a refusal by a rule of a business
// ("the payment does not add up"): a failure of no known category, told in one
// line, where no tool of the history runs or writes anything on a computer. There
// the agent serves a person under rules that it knows and we do not.
func (h *history) refused(n int) bool {
	told := false
	for i := range h.load(n).steps {
		s := &h.turns[n].steps[i]
		f := s.judge()
		told = told || f.Failed && f.Category == recovery.CategoryNone && !strings.Contains(s.essence().text, "\n")
	}
	if !told {
		return false
	}
	for k := range h.turns {
		for i := range h.load(k).steps {
			switch kindOf(h.turns[k].steps[i].Tool) {
			case kindShell, kindCode, kindEditor:
				return false
			}
		}
	}
	return true
}

// repeats reports whether all that turn k did had been done in turn j, with the
// same results. What turn j did besides must not have changed anything.
func (h *history) repeats(j, k int) bool {
	if b := h.load(k); k-j > 1 && !h.turns[j].loaded && h.differs(j, b) {
		return false
	}
	a, b := h.load(j), h.load(k)
	if len(a.steps) == 0 || len(b.steps) == 0 || len(a.steps) > maxParallel || len(b.steps) > maxParallel {
		return false
	}
	var known [maxParallel]bool
	for i := range b.steps {
		s, found := &b.steps[i], false
		for n := range a.steps {
			if r := &a.steps[n]; sameCall(r, s) {
				known[n] = true
				found = found || h.sameResult(r, s)
			}
		}
		if !found {
			return false
		}
	}
	for n := range a.steps {
		if !known[n] && !a.steps[n].reads() {
			return false
		}
	}
	return true
}

// differs reports cheaply whether turn j surely made none of a turn's calls: no
// result is looked at.
func (h *history) differs(j int, t *turn) bool {
	if h.how() != protocolNone {
		return false
	}
	h.pending = h.calls(h.turns[j].answered-1, h.pending[:0])
	for i := range t.steps {
		if s := &t.steps[i]; strings.TrimSpace(s.Arguments) == "" || slices.ContainsFunc(h.pending, s.isCall) {
			return false
		}
	}
	return true
}

// isCall reports whether the step's call means the same as c.
func (s *step) isCall(c pending) bool {
	if c.Name != s.Tool {
		return false
	}
	arguments := c.Text()
	if arguments == s.Arguments {
		return true
	}
	if t := strings.TrimSpace(arguments); s.texts() && sortedTexts(t) {
		return t == strings.TrimSpace(s.Arguments)
	}
	return canonical(arguments) == s.canonical()
}

// patient reports whether turn k waits for something that may change by
// itself, or only makes gestures: doing that again is no loop.
func (h *history) patient(k int) bool {
	t := h.load(k)
	waits, moves, lasts := false, true, false
	for i := range t.steps {
		s := &t.steps[i]
		waits = waits || s.waits()
		moves = moves && s.moves()
		if waits {
			f := s.judge()
			lasts = lasts || f.Failed && lasting(f.Category)
		}
	}
	return moves || waits && !lasts
}

// repetition is the same turn over and over.
func (h *history) repetition(n int) (l recovery.Loop, ok bool) {
	k := n
	for k > 0 && !h.spoken(k-1) && h.repeats(k-1, k) {
		k--
	}
	if k == n || h.patient(n) {
		return l, false
	}
	t := &h.turns[n]
	l = h.loop(recovery.LoopSameResult, n-k+1, k, n, n)
	failed, passes, goesOn := false, true, false
	for i := range t.steps {
		s := &t.steps[i]
		if s.wrong() {
			failed, passes = true, passes && passing(s.judge().Category)
		} else {
			goesOn = goesOn || underWay(s.essence().text)
		}
	}
	if failed {
		l.Kind = recovery.LoopSameError
	}
	// Once more after a failure of the network, or to see how something gets on, is no loop.
	if l.Count == 2 && (failed && passes || !failed && goesOn) {
		return l, false
	}
	l.Fingerprint = h.print(l.Kind, n, n)
	return l, true
}

// alternation is A-B-A-B: two different turns that take turns.
func (h *history) alternation(n int) (l recovery.Loop, ok bool) {
	k := n // the first turn of those that are as the one two turns later
	for k >= 2 && !h.spoken(k-1) && !h.spoken(k-2) && h.repeats(k-2, k) {
		k--
	}
	// k and k-1 have no predecessor that they repeat: they are the first pair.
	pairs := (n - k + 2) / 2
	if n-k < 2 || h.patient(n) || h.patient(n-1) || h.repeats(n-1, n) && h.repeats(n, n-1) {
		return l, false
	}
	from := n - 2*pairs + 1
	l = h.loop(recovery.LoopAlternation, pairs, from, n, n-1)
	l.Fingerprint = h.print(l.Kind, n-1, n)
	return l, true
}

// loop describes turns from to n; the tools are those of the turns from tools on.
func (h *history) loop(kind recovery.LoopKind, count, from, n, tools int) recovery.Loop {
	l := recovery.Loop{Kind: kind, Count: count, From: h.turns[from].start, To: h.turns[n].answered - 1}
	for k := tools; k <= n; k++ {
		for i := range h.turns[k].steps {
			s := &h.turns[k].steps[i]
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
			prints = append(prints, mark(s.Tool, s.canonical()))
		}
	}
	slices.Sort(prints)
	raw := []byte(kind)
	for _, p := range slices.Compact(prints) {
		raw = binary.BigEndian.AppendUint64(raw, p)
	}
	return mark(string(raw))
}
