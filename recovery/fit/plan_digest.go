package fit

import "slices"

// The length of a digest in tokens: a share of the target, within bounds.
const (
	digestShare = 6
	digestMin   = 300
	digestMax   = 6000
)

// digestTokens is how long a digest may be.
func (p *planner) digestTokens() int {
	return max(digestMin, min(digestMax, p.goal.target/digestShare))
}

// digest is the last resort: the oldest turns give way to what the program can
// quote of them. It is for requests that would otherwise not fit, and then goes
// down to the target. Where what is protected has no room, less is: first the
// user's words and errors in the middle, which the digest quotes, then large
// results of the recent turns, and in the end all but the last turn.
func (p *planner) digest(k *work, prot *protection) {
	base := k.clone()
	for level := range digestLevels {
		try := base.clone()
		did := p.quote(try, prot.narrowed(try.v, level))
		if level > 0 && p.measured(try) > p.goal.limit {
			p.fresh(try, prot)
		}
		enough := p.goal.limit
		if level == 0 {
			enough = (p.goal.limit + p.goal.target) / 2
		}
		if !did && level > 0 && try.total >= k.total {
			continue
		}
		if total := p.measured(try); total <= enough || total < k.total {
			*k = *try
			if total <= enough {
				break
			}
		}
	}
	if slices.ContainsFunc(k.cuts, func(c cut) bool { return c.fresh }) {
		p.name(TierDigest)
	}
}

// digestLevels is how many sets of protected messages are tried.
const digestLevels = 4

// narrowed is a protection with fewer reasons, see digest.
func (p *protection) narrowed(v *view, level int) *protection {
	if level == 0 {
		return p
	}
	n := *p
	n.of = slices.Clone(p.of)
	last, newest := v.lastStep(), true
	if level > 1 {
		n.recent = max(last, v.lead)
	}
	for i := len(n.of) - 1; i >= 0; i-- {
		n.of[i] &^= protectError
		if n.of[i]&protectUser != 0 {
			if !newest || level > 2 && i < last {
				n.of[i] &^= protectUser
			}
			newest = false
		}
		if i < n.recent {
			n.of[i] &^= protectRecent
		}
	}
	return &n
}

// quoteEarly writes a digest for a session that nobody wrote a summary for: what
// only just fits is fitted again some requests later, and each time nearly all
// of it is paid for anew. Nothing protected gives way for that.
func (p *planner) quoteEarly(k *work, prot *protection) {
	if _, saved := p.oldest(k, prot, p.digestTokens(), true); saved < 2*p.digestTokens() {
		return
	}
	try := k.clone()
	if p.quote(try, prot) && p.measured(try) < k.total {
		*k = *try
		p.name(TierDigest)
	}
}

// quote replaces the oldest turns by a digest, and with them what stands in the
// place of still older ones.
func (p *planner) quote(k *work, prot *protection) bool {
	estimate := p.digestTokens()
	c, saved := p.oldest(k, prot, estimate, true)
	if len(c.removed) < 2 {
		return false
	}
	text, ok := p.digestOf(k, c.removed, min(estimate, saved/2))
	if !ok {
		return false
	}
	c.fresh = true
	return p.replace(k, c, text)
}

// digestOf writes a digest of at most so many tokens.
func (p *planner) digestOf(k *work, removed []int, tokens int) (text string, ok bool) {
	f := k.gather(removed)
	size := 0
	for _, i := range removed {
		size += k.v.items[i].End - k.v.items[i].Start
	}
	room := tokens * 4
	for range 6 {
		text = k.digested(removed, f, room)
		n := k.w.Text(k.model, text) + framing
		if n <= tokens && len(text)+64 < size {
			return text, true
		}
		room = min(room*9/10, room*tokens/n*19/20)
	}
	return "", false
}

// goal is what a budget asks for; trigger is the size from which on the next
// request would be fitted again.
func (f *Fitter) goal(budget, trigger int) goal {
	target := int(f.config().TargetShare * float64(budget))
	return goal{budget: budget, target: target, limit: max(target, min(trigger, budget-1))}
}
