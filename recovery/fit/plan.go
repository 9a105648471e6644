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
	cfg      *Config
	goal     goal
	scribe   scribe // nil where nobody writes summaries
	secret   keys
	names    []string // of the tiers that did something, in order
	perToken int      // bytes of the request to a token
	cramped  bool     // what stands before the first answer, and the last turn, leave no room
}

// run adds edits to k until it meets the goal. It reports whether the result
// fits the budget; the target may be missed.
func (p *planner) run(ctx context.Context, k *work) bool {
	p.perToken = max(2, min(6, len(k.v.body.Raw())/max(1, k.counts.Total)))
	p.measured(k)
	prot := protect(k.v, k.tokens, p.goal.budget, p.cfg.KeepRecent)
	if p.hopeless(k, prot) {
		return false
	}
	// What was fitted before stays as it is: the provider has cached it.
	frontier := k.frontier()
	base := k.clone()
	if p.again(base, prot) {
		*k = *base
		return p.fits(k)
	}
	*k = *base.clone()
	if p.evenly(k, prot, frontier) {
		p.condense(ctx, k)
		return p.fits(k)
	}
	p.condense(ctx, k)
	if (p.scribe != nil && p.summarise(ctx, k, prot, p.summaryTokens()) || p.quote(k, prot)) && p.measured(k) < p.goal.target {
		p.fill(k, base, prot, frontier)
	}
	if p.measured(k) > p.goal.target && frontier > 0 {
		p.evenly(k, prot, 0)
	}
	if p.measured(k) > p.goal.limit {
		p.digest(k, prot)
	}
	return p.fits(k)
}

// fill gives back to what is left beside new summaries or digests what the target
// has room for.
func (p *planner) fill(k, base *work, prot *protection, from int) {
	try := base.clone()
	for _, c := range k.cuts {
		if !slices.ContainsFunc(base.cuts, func(old cut) bool { return old.sealed == c.sealed }) {
			try.remove(c)
		}
	}
	for i, s := range k.sealed {
		if base.sealed[i] == nil {
			try.seal(i, s)
		}
	}
	if p.evenly(try, prot, from) {
		*k = *try
	}
}

// hopeless reports whether what nothing may touch is too large by itself. What a
// person pasted before the first answer may be shortened where it has to be.
func (p *planner) hopeless(k *work, prot *protection) bool {
	floor, out, last := k.counts.Fixed, 0, k.v.lastStep()
	for i := range k.v.items {
		it := &k.v.items[i]
		if prot.of[i]&(protectLead|protectSystem) == 0 && (i < last || prot.of[i]&protectUser == 0) {
			continue
		}
		floor += k.tokens[i]
		if k.tokens[i] > p.largest() && it.Role == transcript.RoleUser && !it.summary() {
			n := 0
			for _, s := range pastes(it.text, i >= k.v.lead) {
				n += s.End - s.Start
			}
			out += int(float64(k.tokens[i]) * float64(n) / float64(len(it.text)+1))
		}
	}
	p.cramped = floor > p.goal.budget*9/10
	return floor-out >= p.goal.budget
}

// again takes out results that say nothing that is not said later, the oldest
// first, until the target is met.
func (p *planner) again(k *work, prot *protection) bool {
	for _, t := range []struct {
		name    string
		propose func(v *view, p *protection) []proposal
	}{{TierReread, reread}, {TierOvertaken, overtaken}} {
		for _, c := range t.propose(k.v, prot) {
			if k.total <= p.goal.target && p.measured(k) <= p.goal.target {
				return true
			}
			if k.add(c.at, c.recipe, minSaving) {
				p.name(t.name)
			}
		}
	}
	return p.measured(k) <= p.goal.target
}

// condense has the summariser write what large results said, where that is
// wanted: in the place of their ends.
func (p *planner) condense(ctx context.Context, k *work) {
	if !p.cfg.SummarizeResults || p.scribe == nil {
		return
	}
	for i := range k.v.items {
		it := &k.v.items[i]
		if len(it.text) < 4*p.cfg.ThresholdChars || it.shape.Media > 0 || len(k.at[i]) != 1 || k.at[i][0].Op != opShorten && k.at[i][0].Op != opLong {
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
