package fit

import (
	"context"
	"slices"
)

// The length of a summary in tokens: a share of the budget, within bounds.
const (
	summaryShare = 16
	summaryMin   = 400
	summaryMax   = 3000
)

// summaryTokens is how long a summary may be.
func (p *planner) summaryTokens() int {
	return max(summaryMin, min(summaryMax, p.goal.budget/summaryShare))
}

// summarise replaces the oldest turns by a summary, as many as it takes to meet
// the target. Earlier
// summaries stay as they are, unless together they have become long: then the
// new one takes their place too.
func (p *planner) summarise(ctx context.Context, k *work, prot *protection, estimate int) bool {
	if p.measured(k) <= p.goal.target {
		return true
	}
	c, saved := p.oldest(k, prot, func(int) int { return estimate }, false)
	if len(c.removed) < 2 || saved < 2*estimate || k.total-saved+estimate > p.goal.budget {
		return false
	}
	text, ok := p.scribe.turns(ctx, k, c.removed, estimate)
	if !ok || k.w.Text(k.model, text)+framing >= saved {
		return false
	}
	if !p.replace(k, c, text) {
		return false
	}
	p.name(TierSummary)
	return true
}

// replace puts a text in the place of a run of turns, sealed.
func (p *planner) replace(k *work, c cut, text string) bool {
	key, err := k.v.sealKey(p.secret, c.removed)
	if err != nil {
		return false
	}
	box := seal(key, text)
	if box == nil {
		return false
	}
	c.text = text
	c.sealed = &sealed{Op: opCut, First: k.v.items[c.removed[0]].key, Span: c.end - c.start, Box: box, text: text}
	for i := c.start; i < c.end; i++ {
		if _, gone := slices.BinarySearch(c.removed, i); !gone {
			c.sealed.Kept = append(c.sealed.Kept, i-c.start)
		}
	}
	k.remove(c)
	return true
}

// oldest chooses the run of complete turns to replace, by as many tokens as
// estimate says, so that the target is met, and says what removing it saves. With all the run begins with the first turn. What went before
// does not come back.
func (p *planner) oldest(k *work, prot *protection, estimate func(saved int) int, all bool) (c cut, saved int) {
	v := k.v
	start, earlier := v.lead, 0
	for _, old := range k.cuts {
		earlier += old.tokens
	}
	if !all && earlier <= p.goal.budget/5 {
		for _, old := range k.cuts {
			start = max(start, old.end)
		}
	}
	for start < prot.recent && prot.of[start]&keeps != 0 && !k.removed(start) {
		start++
	}
	for start < prot.recent && !v.boundary(start) {
		start++
	}
	c = cut{start: start, end: start}
	best := c
	for end := start; end < prot.recent; {
		next := min(v.stepEnd(end), prot.recent)
		for i := end; i < next; i++ {
			if prot.of[i]&keeps == 0 || k.removed(i) {
				c.removed = append(c.removed, i)
				saved += k.tokens[i]
			}
		}
		for _, old := range k.cuts {
			if old.end > end && old.end <= next && old.start >= start {
				saved += old.tokens
			}
		}
		end = next
		// A cut ends where a removed step ends, and before an answer or a user.
		if c.end = end; len(c.removed) > 0 && c.removed[len(c.removed)-1] == end-1 && v.boundary(end) && !k.straddled(end) {
			best = c
			if k.total-saved+estimate(saved) <= p.goal.target {
				break
			}
		}
	}
	best.removed = slices.Clip(best.removed)
	saved = 0
	for _, i := range best.removed {
		saved += k.tokens[i]
	}
	for _, old := range k.cuts {
		if old.start >= best.start && old.end <= best.end {
			saved += old.tokens
		}
	}
	if len(best.removed) > 0 { // a run begins with a message that goes
		best.start = best.removed[0]
	}
	return best, saved
}

// straddled reports whether message i is inside of an earlier cut.
func (k *work) straddled(i int) bool {
	return slices.ContainsFunc(k.cuts, func(c cut) bool { return c.start < i && i < c.end })
}
