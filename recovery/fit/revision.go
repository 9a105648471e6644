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

// minSaving is how many tokens an edit must save to be made.
const minSaving = 12

// framingTokens is the upper limit of a message's tokens besides its text.
const framingTokens = 12

// revision is a history with edits. Indices are those of the history. Not safe for concurrent use.
type revision struct {
	v       *history
	counter Counter
	model   string
	counts  count.Counts // of the history without edits
	recipes map[int][]recipe
	sealed  map[int]*sealed // results replaced by the summariser's text
	cut     *cut            // replaced turns, nil for none
	tokens  []int           // of each message as it is now; 0 when removed
	total   int             // of the whole request; an estimate until measured
}

// cut is a run of messages of which some are removed. A text at its end replaces them.
type cut struct {
	end     int // after the run
	removed []int
	sealed  *sealed // the replacement
	tokens  int     // of the replacement
}

func newRevision(v *history, w Counter, model string) *revision {
	k := &revision{v: v, counter: w, model: model, counts: w.Measure(v.body, model), recipes: map[int][]recipe{}, sealed: map[int]*sealed{}}
	k.tokens = slices.Clone(k.counts.Messages)
	k.total = k.counts.Total
	return k
}

// clone returns a copy to try further edits on.
func (k *revision) clone() *revision {
	c := *k
	c.recipes, c.sealed, c.tokens = maps.Clone(k.recipes), maps.Clone(k.sealed), slices.Clone(k.tokens)
	return &c
}

// removed reports whether message i is removed.
func (k *revision) removed(i int) bool {
	if k.cut == nil {
		return false
	}
	_, gone := slices.BinarySearch(k.cut.removed, i)
	return gone
}

// editedEnd returns the index after the last edited message.
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

// add makes an edit if it applies to message i and saves at least least tokens. It reports
// whether it did. A message gets at most one edit of its text and one of its arguments.
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
	k.recipes[i] = append(slices.Clip(k.recipes[i]), r) // clones share the lists
	k.tokens[i] -= saved
	k.total -= saved
	return true
}

// saving returns how many tokens an edit saves.
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

// seal replaces a result by the summariser's text, and drops the edits of that result.
func (k *revision) seal(i int, s *sealed) {
	if k.removed(i) || !k.v.items[i].result {
		return
	}
	delete(k.recipes, i)
	now := k.counts.Messages[i] - k.saving(i, rendered{text: s.text, texts: true})
	k.total += now - k.tokens[i]
	k.sealed[i], k.tokens[i] = s, now
}

// remove makes a cut, which replaces an earlier one, and drops the edits of removed messages.
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
	c.tokens = k.counter.Text(k.model, c.sealed.text) + framingTokens
	k.total += c.tokens
	k.cut = &c
}

// steps returns how many messages are changed or removed.
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

// tiers lists the kinds of edits that are in k and not in was.
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
	if k.cut != nil && (was.cut == nil || k.cut.sealed.text != was.cut.sealed.text) {
		did[TierSummary] = strings.Contains(recovery.Head(k.cut.sealed.text, 64), summaryHead)
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

// build returns the body with the edits.
func (k *revision) build() (*transcript.Body, error) {
	e := k.v.body.Edit()
	for i := range k.v.items {
		for _, r := range k.recipes[i] {
			if out, ok := k.v.render(i, r); ok {
				out.addTo(k.v, e, i)
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
		e.InsertMessage(c.end, k.v.body.TextMessage(k.v.summaryRole(c.end), c.sealed.text, mark))
	}
	return e.Body()
}

// buildChecked is build with check; ok is false if the result must not be sent.
func (k *revision) buildChecked() (b *transcript.Body, ok bool) {
	b, err := k.build()
	return b, err == nil && check(k.v.body, b, k.v.cache) == nil
}

// summaryRole returns the role of a summary before message i: user, since models imitate
// assistant messages. In a chat without tools it is the assistant if a user message
// follows, since some chat templates insist on alternating roles.
func (v *history) summaryRole(i int) string {
	if !v.nativeTools && i < len(v.items) && v.items[i].Role == transcript.RoleUser {
		return transcript.RoleAssistant
	}
	return transcript.RoleUser
}

// saveTo stores the edits in s, in the order of the history.
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

// apply makes the edits of a session on a history that has its messages again. It skips
// edits whose messages are missing, or that cannot be decrypted, and reports whether any
// was made. It ignores token counts, so that every replica gives the same bytes.
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
		if r.Op == opLong || i < last { // the client may have rewound, so that it is the newest result again
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

// unseal makes one sealed edit, whose messages begin at start.
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
	k.remove(cut{end: end, removed: removed, sealed: &opened})
}
