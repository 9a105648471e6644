package fit

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// minSaving is what an edit must save, in tokens, to be made.
const minSaving = 12

// framingTokens is what a message costs besides its text, in tokens, at most.
const framingTokens = 12

// revision is a history with edits: what will be built. Indices are those of the history.
type revision struct {
	v       *history
	counter Counter
	model   string
	counts  count.Counts // of the history without edits
	recipes map[int][]recipe
	sealed  map[int]*sealed // results in the summariser's words
	cut     *cut            // turns that gave way to a text, nil for none
	tokens  []int           // of each message as it is now; 0 when removed
	total   int             // of the whole request, as far as is known
}

// cut is a run of messages of which some are removed. A text in place of those
// stands at its end.
type cut struct {
	start, end int
	removed    []int
	text       string // what stands in their place
	tokens     int
	sealed     *sealed
}

func newRevision(v *history, w Counter, model string) *revision {
	k := &revision{v: v, counter: w, model: model, counts: w.Measure(v.body, model), recipes: map[int][]recipe{}, sealed: map[int]*sealed{}}
	k.tokens = slices.Clone(k.counts.Messages)
	k.total = k.counts.Total
	return k
}

// clone is a copy to try further edits on. Lists of recipes only grow, by one
// owner at a time.
func (k *revision) clone() *revision {
	c := *k
	c.recipes = make(map[int][]recipe, len(k.recipes))
	for i, list := range k.recipes {
		c.recipes[i] = slices.Clip(list)
	}
	c.sealed, c.tokens = maps.Clone(k.sealed), slices.Clone(k.tokens)
	return &c
}

// removed reports whether message i is gone.
func (k *revision) removed(i int) bool {
	if k.cut == nil {
		return false
	}
	_, gone := slices.BinarySearch(k.cut.removed, i)
	return gone
}

// editedEnd is the place behind all edits.
func (k *revision) editedEnd() int {
	last := 0
	if k.cut != nil {
		last = k.cut.end
	}
	for i := range k.recipes {
		last = max(last, i+1)
	}
	for i := range k.sealed {
		last = max(last, i+1)
	}
	return last
}

// add makes an edit if it is possible and saves at least least tokens.
func (k *revision) add(i int, r recipe, least int) bool {
	if k.removed(i) || k.sealed[i] != nil {
		return false
	}
	for _, have := range k.recipes[i] {
		if have.Op == r.Op || have.Op != opArguments && r.Op != opArguments {
			return false
		}
	}
	out, ok := k.v.render(i, r)
	if !ok {
		return false
	}
	saved := k.saving(i, out)
	if saved < least {
		return false
	}
	r.Key = k.v.items[i].key
	k.recipes[i] = append(k.recipes[i], r)
	k.tokens[i] -= saved
	k.total -= saved
	return true
}

// saving is what an edit saves, in tokens.
func (k *revision) saving(i int, out rendered) (saved int) {
	it := &k.v.items[i]
	if out.media {
		saved += k.counts.Messages[i] - k.counter.Text(k.model, it.text) - framingTokens*it.shape.Media
	}
	if out.texts {
		now := k.counter.Text(k.model, out.text)
		if it.shape.Media > 0 && it.result {
			saved += k.counts.Messages[i] - now - framingTokens
		} else {
			saved += k.counter.Text(k.model, it.text) - now
		}
	}
	for n, text := range out.args {
		saved += k.counter.Text(k.model, it.calls[n].text) - k.counter.Text(k.model, text)
	}
	return min(saved, k.counts.Messages[i])
}

// seal puts the summariser's words in the place of a result; an edit of it goes.
func (k *revision) seal(i int, s *sealed) {
	if k.removed(i) || !k.v.items[i].result {
		return
	}
	delete(k.recipes, i)
	now := k.counts.Messages[i] - k.saving(i, rendered{text: s.text, texts: true})
	k.total += now - k.tokens[i]
	k.sealed[i], k.tokens[i] = s, now
}

// remove makes a cut, in the place of the one before; edits inside of it go.
func (k *revision) remove(c cut) {
	if k.cut != nil {
		k.total -= k.cut.tokens
	}
	for _, i := range c.removed {
		k.total -= k.tokens[i]
		k.tokens[i] = 0
		delete(k.recipes, i)
		delete(k.sealed, i)
	}
	c.tokens = k.counter.Text(k.model, c.text) + framingTokens
	k.total += c.tokens
	k.cut = &c
}

// steps is how many messages were changed or removed.
func (k *revision) steps() int {
	n := len(k.recipes)
	for i := range k.sealed {
		if len(k.recipes[i]) == 0 {
			n++
		}
	}
	if k.cut != nil {
		n += len(k.cut.removed)
	}
	return n
}

// tiers names the edits that k has and was has not.
func (k *revision) tiers(was *revision) (names []string) {
	did := map[string]bool{}
	for i, list := range k.recipes {
		for _, r := range list {
			if !slices.Contains(was.recipes[i], r) {
				did[tierOf[r.Op]] = true
			}
		}
	}
	for i := range k.sealed {
		did[TierResults] = did[TierResults] || was.sealed[i] == nil
	}
	if k.cut != nil && (was.cut == nil || k.cut.text != was.cut.text) {
		did[TierSummary] = strings.Contains(recovery.Head(k.cut.text, 64), summaryHead)
		did[TierDigest] = !did[TierSummary]
	}
	for _, name := range [...]string{TierMedia, TierResults, TierArguments, TierLong, TierSummary, TierDigest} {
		if did[name] {
			names = append(names, name)
		}
	}
	return names
}

var tierOf = map[op]string{opShorten: TierResults, opArguments: TierArguments, opLong: TierLong, opMedia: TierMedia}

// build writes the history with its edits.
func (k *revision) build() (*transcript.Body, error) {
	e := k.v.body.Edit()
	for i := range k.v.items {
		for _, r := range k.recipes[i] {
			if out, ok := k.v.render(i, r); ok {
				out.edit(k.v, e, i)
			}
		}
		if s := k.sealed[i]; s != nil {
			e.SetText(i, s.text, false)
		}
	}
	if c := k.cut; c != nil {
		var mark []byte
		for _, i := range c.removed {
			e.RemoveMessage(i)
			if m := k.v.items[i].shape.Mark; m != nil {
				mark = m
			}
		}
		e.InsertMessage(c.end, k.v.body.TextMessage(k.v.summaryRole(c.end), c.text, mark))
	}
	return e.Body()
}

// buildChecked is the history with its edits, if it may be sent.
func (k *revision) buildChecked() (b *transcript.Body, ok bool) {
	b, err := k.build()
	return b, err == nil && check(k.v.body, b, k.v.cache) == nil
}

// summaryRole is who tells a summary that stands before message i: the user,
// for what stands as the assistant's own words is imitated. Only where people
// and assistant do nothing but take turns, which some templates insist on, it is
// not the one who speaks next.
func (v *history) summaryRole(i int) string {
	if !v.nativeTools && i < len(v.items) && v.items[i].Role == transcript.RoleUser {
		return transcript.RoleAssistant
	}
	return transcript.RoleUser
}

// saveTo is what of these edits is to be remembered, in the order of the history.
func (k *revision) saveTo(s *session) {
	s.Recipes, s.Sealed = nil, nil
	for i := range k.v.items {
		s.Recipes = append(s.Recipes, k.recipes[i]...)
		if box := k.sealed[i]; box != nil {
			s.Sealed = append(s.Sealed, box)
		}
	}
	if k.cut != nil {
		s.Sealed = append(s.Sealed, k.cut.sealed)
	}
}

// apply carries out what is remembered of a session on a history that carries
// its messages again. What does not fit the history, or cannot be opened, is
// left out. It reports whether anything was done. Counts do not decide, so that
// every replica does the same.
func (k *revision) apply(s *session) bool {
	v, last := k.v, k.v.lastStep()
	where := make(map[uint64]int, len(v.items))
	for i := range v.items {
		where[v.items[i].key] = i
	}
	for _, r := range s.Recipes {
		i, ok := where[r.Key]
		if !ok || i < v.leadEnd && (r.Op != opLong && r.Op != opMedia || v.items[i].Role != transcript.RoleUser) {
			continue
		}
		if r.Op == opLong || i < last { // after the client went back to an earlier state it may be the newest
			k.add(i, r, math.MinInt)
		}
	}
	for _, box := range s.Sealed {
		if start, ok := where[box.First]; ok && start >= v.leadEnd && start+box.Span <= last {
			k.unseal(box, start)
		}
	}
	return len(k.recipes)+len(k.sealed) > 0 || k.cut != nil
}

// unseal carries out one sealed edit at the place where its messages are.
func (k *revision) unseal(box *sealed, start int) {
	v, end := k.v, start+box.Span
	removed, ok := box.removedIn(v, start)
	if !ok || box.Op == opCut && (!v.boundary(start) || !v.boundary(end) || k.cut != nil) {
		return
	}
	opened := *box
	if opened.text, ok = v.unseal(removed, box.Box); !ok {
		return
	}
	if box.Op == opSealed {
		k.seal(start, &opened)
		return
	}
	k.remove(cut{start: start, end: end, removed: removed, text: opened.text, sealed: &opened})
}
