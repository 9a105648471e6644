package fit

import (
	"maps"
	"slices"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// minSaving is what an edit must save, in tokens, to be made.
const minSaving = 12

// framing is what a message costs besides its text, in tokens, at most.
const framing = 12

// work is a history with edits: what will be built. Indices are those of the view.
type work struct {
	v      *view
	w      Weigher
	model  string
	counts Counts // of the history without edits
	at     map[int][]recipe
	cuts   []cut
	sealed map[int]*sealed // results in the summariser's words
	made   map[place]rendered
	tokens []int // of each message as it is now; 0 when removed
	total  int   // of the whole request, as far as is known
}

// place is an edit of a message, by what is done.
type place struct {
	at int
	op op
}

// cut is a run of messages of which some are removed. A summary of those
// stands at its end.
type cut struct {
	start, end int
	removed    []int
	text       string // what stands in their place
	tokens     int
	sealed     *sealed
}

func newWork(v *view, w Weigher, model string) *work {
	k := &work{v: v, w: w, model: model, counts: w.Measure(v.body, model), at: map[int][]recipe{}, sealed: map[int]*sealed{}, made: map[place]rendered{}}
	k.tokens = slices.Clone(k.counts.Messages)
	k.total = k.counts.Total
	return k
}

// removed reports whether message i is gone.
func (k *work) removed(i int) bool {
	for _, c := range k.cuts {
		if i >= c.start && i < c.end {
			_, ok := slices.BinarySearch(c.removed, i)
			return ok
		}
	}
	return false
}

// frontier is the place behind all edits.
func (k *work) frontier() int {
	last := 0
	for i := range k.at {
		last = max(last, i+1)
	}
	for i := range k.sealed {
		last = max(last, i+1)
	}
	for _, c := range k.cuts {
		last = max(last, c.end)
	}
	return last
}

// add makes an edit if it is possible and saves at least least tokens.
func (k *work) add(i int, r recipe, least int) bool {
	if k.removed(i) || k.sealed[i] != nil {
		return false
	}
	for _, have := range k.at[i] {
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
	k.at[i] = append(k.at[i], r)
	k.made[place{i, r.Op}] = out
	k.tokens[i] -= saved
	k.total -= saved
	return true
}

// saving is what an edit saves, in tokens.
func (k *work) saving(i int, out rendered) (saved int) {
	it := &k.v.items[i]
	if out.media {
		saved += k.counts.Messages[i] - k.w.Text(k.model, it.text) - framing*it.shape.Media
	}
	if out.texts {
		now := k.w.Text(k.model, out.text)
		if it.shape.Media > 0 && it.result {
			saved += k.counts.Messages[i] - now - framing
		} else {
			saved += k.w.Text(k.model, it.text) - now
		}
	}
	for n, text := range out.args {
		saved += k.w.Text(k.model, it.calls[n].text) - k.w.Text(k.model, text)
	}
	return min(saved, k.counts.Messages[i])
}

// seal puts the summariser's words in the place of a result; an edit of it goes.
func (k *work) seal(i int, s *sealed) {
	if k.removed(i) || !k.v.items[i].result {
		return
	}
	delete(k.at, i)
	now := k.counts.Messages[i] - k.saving(i, rendered{text: s.text, texts: true})
	k.total += now - k.tokens[i]
	k.sealed[i], k.tokens[i] = s, now
}

// remove makes a cut; cuts and edits inside of it go.
func (k *work) remove(c cut) {
	for _, old := range k.cuts {
		if old.start >= c.start && old.end <= c.end {
			k.total -= old.tokens
		}
	}
	k.cuts = slices.DeleteFunc(k.cuts, func(old cut) bool { return old.start >= c.start && old.end <= c.end })
	for _, i := range c.removed {
		k.total -= k.tokens[i]
		k.tokens[i] = 0
		delete(k.at, i)
		delete(k.sealed, i)
	}
	c.tokens = k.w.Text(k.model, c.text) + framing
	k.total += c.tokens
	k.cuts = append(k.cuts, c)
	slices.SortFunc(k.cuts, func(a, b cut) int { return a.start - b.start })
}

// overlaps reports whether a cut would touch another one only in part.
func (k *work) overlaps(start, end int) bool {
	return slices.ContainsFunc(k.cuts, func(c cut) bool { return start < c.end && c.start < end })
}

// steps is how many messages were changed or removed.
func (k *work) steps() int {
	n := len(k.at)
	for i := range k.sealed {
		if len(k.at[i]) == 0 {
			n++
		}
	}
	for _, c := range k.cuts {
		n += len(c.removed)
	}
	return n
}

// build writes the history with its edits.
func (k *work) build() (*transcript.Body, error) {
	e := k.v.body.Edit()
	for i := range k.v.items {
		for _, r := range k.at[i] {
			k.made[place{i, r.Op}].edit(k.v, e, i)
		}
		if s := k.sealed[i]; s != nil {
			e.SetText(i, s.text, false)
		}
	}
	for _, c := range k.cuts {
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

// summaryRole is who tells a summary that stands before message i: the user,
// for what stands as the assistant's own words is imitated. Only where people
// and assistant do nothing but take turns, which some templates insist on, it is
// not the one who speaks next.
func (v *view) summaryRole(i int) string {
	if !v.native && i < len(v.items) && v.items[i].Role == transcript.RoleUser {
		return transcript.RoleAssistant
	}
	return transcript.RoleUser
}

// recipes lists the edits in the order of the history.
func (k *work) recipes() (list []recipe) {
	for i := range k.v.items {
		list = append(list, k.at[i]...)
	}
	return list
}

// sealings lists what is sealed, in the order of the history.
func (k *work) sealings() (list []*sealed) {
	for i := range k.v.items {
		if s := k.sealed[i]; s != nil {
			list = append(list, s)
		}
	}
	for _, c := range k.cuts {
		if c.sealed != nil {
			list = append(list, c.sealed)
		}
	}
	return list
}

// clone is a copy to try further edits on.
func (k *work) clone() *work {
	c := *k
	c.at = make(map[int][]recipe, len(k.at))
	for i, list := range k.at {
		c.at[i] = slices.Clone(list)
	}
	c.sealed = maps.Clone(k.sealed)
	c.made = maps.Clone(k.made)
	c.cuts = slices.Clone(k.cuts)
	c.tokens = slices.Clone(k.tokens)
	return &c
}
