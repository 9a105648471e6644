package fit

import (
	"context"
	"slices"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Weigher counts tokens, uncalibrated.
type Weigher interface {
	Measure(b *transcript.Body, model string) Counts
	Text(model, s string) int
}

// goal is how large a request may be, in the meter's tokens, output reserve
// already taken off.
type goal struct {
	budget int // the window for the prompt
	target int // what fitting reaches for
	limit  int // above it the next request would be fitted again; at most budget
}

// scribe writes summaries. Both methods return false where there is none to be had.
type scribe interface {
	// turns summarises messages that are removed; tokens is how long it may be.
	turns(ctx context.Context, k *work, removed []int, tokens int) (text string, ok bool)
	// result summarises one large result.
	result(ctx context.Context, k *work, at int) (text string, ok bool)
}

// planner brings one history to its goal.
type planner struct {
	cfg    *Config
	goal   goal
	scribe scribe // nil where nobody writes summaries
	secret keys
	names  []string // of the tiers that did something, in order
	// session says that further requests follow: then each tier, summary and digest
	// too, is carried out on all that is old, so that there are fewer fittings, each
	// of which costs what the provider has cached. A single request is left as large
	// as the target.
	session bool
}

// run adds edits to k until it meets the goal. It reports whether the result
// fits the budget; the target may be missed. body is what was built last.
func (p *planner) run(ctx context.Context, k *work) bool {
	p.measured(k)
	prot := protect(k.v, k.tokens, p.goal.budget, p.cfg.KeepRecent)
	if p.hopeless(k, prot) {
		return false
	}
	frontier := k.frontier()
	usual := tiers(p.cfg, p.goal.budget)
	met := p.mechanical(k, prot, usual, frontier, len(k.v.items), false)
	if !met && frontier > 0 {
		met = p.mechanical(k, prot, usual, 0, frontier, true)
	}
	p.condense(ctx, k)
	if met {
		return p.fits(k)
	}
	estimate := p.summaryTokens()
	if k.counts.Fixed+p.heldNow(k, prot)+estimate > p.goal.budget {
		p.fresh(k, prot)
	}
	told := p.scribe != nil && k.total > p.goal.target && p.summarise(ctx, k, prot, estimate)
	// A digest says less than the ends of results: where those are hardly above the
	// target they stay.
	if p.session && !told && k.total > (p.goal.budget+3*p.goal.target)/4 {
		p.quoteEarly(k, prot)
	}
	if k.total > (p.goal.budget+p.goal.target)/2 {
		p.mechanical(k, prot, tight(), 0, len(k.v.items), false)
	}
	if p.measured(k) > p.goal.limit {
		p.digest(k, prot)
	}
	if k.total > p.goal.budget {
		p.fresh(k, prot)
	}
	return p.fits(k)
}

// hopeless reports whether what nothing may touch is too large by itself.
func (p *planner) hopeless(k *work, prot *protection) bool {
	floor, last := k.counts.Fixed, k.v.lastStep()
	for i := range k.v.items {
		if prot.of[i]&(protectLead|protectSystem) != 0 || i >= last && prot.of[i]&protectUser != 0 {
			floor += k.tokens[i]
		}
	}
	return floor >= p.goal.budget
}

// heldNow is the tokens of the messages that even a summary keeps, as they are now.
func (p *planner) heldNow(k *work, prot *protection) (n int) {
	for i := range k.v.items {
		if prot.of[i]&keeps != 0 {
			n += k.tokens[i]
		}
	}
	return n
}

// mechanical goes through the tiers that need nobody, for the messages from
// from up to to: as few tiers as suffice, and of a single request those of their
// edits of the oldest messages that suffice. So everything up to the last edit is as small as these
// tiers make it, and the next time there is nothing to change before it: what
// the provider has cached of the beginning stays valid. With latest the newest
// edits that suffice are taken instead, which keeps what stands before them.
// It reports whether the target is met.
func (p *planner) mechanical(k *work, prot *protection, list []tier, from, to int, latest bool) bool {
	if k.total <= p.goal.target {
		return true
	}
	var made []edit
	for _, t := range list {
		for _, c := range t.propose(k.v, prot) {
			if c.at < from || c.at >= to {
				continue
			}
			before := k.tokens[c.at]
			if k.add(c.at, c.recipe, minSaving) {
				made = append(made, edit{c.at, c.recipe.Op, before - k.tokens[c.at], t.name})
			}
		}
		if k.total <= p.goal.target {
			break
		}
	}
	whole := k.clone()
	kept := made
	if latest || !p.session {
		kept = prune(k, made, p.goal.target-p.goal.target/200, latest)
	}
	if met := p.measured(k) <= p.goal.target; !met && len(kept) < len(made) {
		*k, kept = *whole, made
	}
	for _, m := range kept {
		p.name(m.tier)
	}
	return p.measured(k) <= p.goal.target
}

// edit is an edit that was made, and what it saves.
type edit struct {
	at    int
	op    op
	saved int
	tier  string
}

// prune takes edits back while the history stays within target: the newest
// first, or the oldest first. It returns those that stay.
func prune(k *work, made []edit, target int, oldest bool) []edit {
	order := slices.Clone(made)
	slices.SortStableFunc(order, func(a, b edit) int {
		if oldest {
			return a.at - b.at
		}
		return b.at - a.at
	})
	n := 0
	for n < len(order) && k.total+order[n].saved <= target {
		k.undo(order[n])
		n++
	}
	gone := make(map[place]bool, n)
	for _, m := range order[:n] {
		gone[place{m.at, m.op}] = true
	}
	return slices.DeleteFunc(slices.Clone(made), func(m edit) bool { return gone[place{m.at, m.op}] })
}

// condense has the summariser write what large results said, where that is
// wanted: in the place of their ends.
func (p *planner) condense(ctx context.Context, k *work) {
	if !p.cfg.SummarizeResults || p.scribe == nil {
		return
	}
	for i := range k.v.items {
		it := &k.v.items[i]
		if len(it.text) < 4*p.cfg.ThresholdChars || it.shape.Media > 0 || len(k.at[i]) != 1 || k.at[i][0].Op != opShorten {
			continue
		}
		text, ok := p.scribe.result(ctx, k, i)
		if !ok {
			continue
		}
		key, err := k.v.sealKey(p.secret, []int{i})
		if err != nil {
			continue
		}
		if box := seal(key, text); box != nil {
			k.seal(i, &sealed{Op: opSealed, First: it.key, Span: 1, Box: box, text: text})
		}
	}
}

// fresh is the last resort without a summary: large results of the recent turns
// too, the oldest first, until the request fits.
func (p *planner) fresh(k *work, prot *protection) {
	room := p.goal.budget * 9 / 10
	did := false
	for i := range k.v.items {
		if k.total <= room {
			break
		}
		if !k.v.items[i].result || prot.of[i]&^(protectRecent|protectError) != 0 || k.tokens[i] <= p.goal.budget/40 {
			continue
		}
		if k.add(i, recipe{Op: opLong, A: 2 * keepHead, B: 2 * keepTail}, minSaving) {
			did = true
		}
	}
	if did {
		p.name(TierLong)
	}
}

// measured counts the history as it is with its edits.
func (p *planner) measured(k *work) int {
	b, err := k.build()
	if err != nil {
		return k.total
	}
	k.total = k.w.Measure(b, k.model).Total
	return k.total
}

// fits reports whether the history fits the budget, measured.
func (p *planner) fits(k *work) bool { return p.measured(k) < p.goal.budget }

// name notes a tier, once.
func (p *planner) name(tier string) {
	if !slices.Contains(p.names, tier) {
		p.names = append(p.names, tier)
	}
}
