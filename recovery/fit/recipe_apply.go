package fit

import (
	"math"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// apply carries out what is remembered of a session on a history that carries
// its messages again. What does not fit the history, or cannot be opened, is
// left out; so is what is no longer true after the client went back to an
// earlier state: that something newer follows. It reports whether anything was
// done. Counts do not decide, so that every replica does the same.
func (k *work) apply(s *session, secret keys) bool {
	v := k.v
	where := make(map[uint64]int, len(v.items))
	for i := range v.items {
		where[v.items[i].key] = i
	}
	none := &protection{of: make([]protected, len(v.items)), tokens: k.tokens}
	followed := map[int]bool{}
	for _, p := range append(reread(v, none), overtaken(v, none)...) {
		followed[p.at] = true
	}
	last := v.lastStep()
	for _, r := range s.Recipes {
		i, ok := where[r.Key]
		if !ok || i < v.lead && (r.Op != opLong && r.Op != opMedia || v.items[i].Role != transcript.RoleUser) {
			continue
		}
		switch r.Op {
		case opRepeated, opOutdated, opOvertaken:
			ok = followed[i]
		case opShorten, opArguments, opMedia:
			ok = i < last
		}
		if ok {
			k.add(i, r, math.MinInt)
		}
	}
	for _, box := range s.Sealed {
		if start, ok := where[box.First]; ok && start >= v.lead && start+box.Span <= last {
			k.unseal(box, start, secret)
		}
	}
	return len(k.at)+len(k.sealed)+len(k.cuts) > 0
}

// unseal carries out one sealed edit at the place where its messages are.
func (k *work) unseal(box *sealed, start int, secret keys) {
	v, end := k.v, start+box.Span
	removed, ok := box.removedIn(v, start)
	if !ok || box.Op == opCut && (!v.boundary(start) || !v.boundary(end) || k.overlaps(start, end)) {
		return
	}
	key, err := v.sealKey(secret, removed)
	if err != nil {
		return
	}
	opened := *box
	if opened.text, ok = unsealed(key, box.Box); !ok {
		return
	}
	if box.Op == opSealed {
		k.seal(start, &opened)
		return
	}
	k.remove(cut{start: start, end: end, removed: removed, text: opened.text, sealed: &opened})
}

// keep is what of these edits is to be remembered.
func (k *work) keep(s *session) {
	s.Recipes, s.Sealed = k.recipes(), k.sealings()
}
