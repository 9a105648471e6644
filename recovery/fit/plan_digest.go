package fit

import "slices"

// The length of a digest: a share of what it replaces, which by then is little
// more than calls and the ends of results, within bounds.
const (
	digestShare = 0.5
	digestMin   = 300 // tokens
	digestMost  = 3   // parts of the target that a digest may have
)

// digestTokens is how long a digest is in place of so many tokens.
func (p *planner) digestTokens(saved int, share float64) int {
	return max(digestMin, min(int(share*float64(saved)), p.goal.target/digestMost))
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
		if p.measured(try) > p.goal.limit {
			did = p.evenly(try, prot.narrowed(try.v, level), 0) || did
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

// quote replaces as many of the oldest turns by a digest as the target asks for.
func (p *planner) quote(k *work, prot *protection) bool {
	if p.measured(k) <= p.goal.target {
		return false
	}
	// A digest may need less than its share: as few turns go for it as suffice.
	low, high := 0.0, digestShare
	var c cut
	text := ""
	for range 5 {
		share := high
		if text != "" {
			share = (low + high) / 2
		}
		next, saved := p.oldest(k, prot, func(saved int) int { return p.digestTokens(saved, share) }, false)
		if len(next.removed) < 2 {
			break
		}
		told, ok := p.digestOf(k, next.removed, min(p.digestTokens(saved, digestShare), saved/2))
		if !ok {
			break
		}
		switch total := k.total - saved + k.w.Text(k.model, told) + framing; {
		case total <= p.goal.target || text == "":
			c, text, high = next, told, share
			if total > p.goal.target*19/20 {
				low = high
			}
		default:
			low = share
		}
		if high-low < 0.02 {
			break
		}
	}
	if text == "" {
		return false
	}
	if !p.replace(k, c, text) {
		return false
	}
	p.name(TierDigest)
	return true
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
