package fit

import (
	"math"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// cap is a length to which messages are cut, by what they are, in bytes.
type caps struct {
	result, args, said int
	large              int // of what is protected or recent, but alone takes much of the budget
}

// The range of lengths, as factors of the configured thresholds. Below least an
// agent's steps are told better by a digest than by what would be left of each.
const (
	stepFactor  = 1.15
	leastFactor = 0.4
	saidFactor  = 2 // what the assistant said is cut later than results are
	slack       = 1.25
)

// capsAt are the lengths for a factor.
func (p *planner) capsAt(factor float64) caps {
	c := caps{result: scaled(p.cfg.ThresholdChars, factor), args: scaled(p.cfg.ThresholdArgs, factor)}
	c.said = saidFactor * c.result
	c.large = max(c.result, p.largest()*p.perToken)
	return c
}

func scaled(n int, factor float64) int { return max(64, int(math.Min(float64(n)*factor, maxKeep))) }

// largest is the size in tokens above which also a message that is recent, or in
// which a person pasted something, is cut.
func (p *planner) largest() int { return p.goal.budget / 8 }

// evenly cuts what is longer to one length, which is as great as the target
// allows: results, arguments, what the assistant said, and whatever alone takes
// much of the budget. Nothing before message from is cut. It reports whether the
// target is met; what it cut is named.
func (p *planner) evenly(k *work, prot *protection, from int) bool {
	longest := 1.0
	for i := from; i < len(k.v.items); i++ {
		it := &k.v.items[i]
		n := float64(len(it.text)) / float64(p.cfg.ThresholdChars)
		for _, c := range it.calls {
			n = max(n, float64(len(c.text))/float64(p.cfg.ThresholdArgs))
		}
		longest = max(longest, n)
	}
	steps := int(math.Log(longest/leastFactor)/math.Log(stepFactor)) + 1
	at := func(step int) *work {
		try := k.clone()
		p.cut(try, prot, p.capsAt(longest*math.Pow(stepFactor, -float64(step))), from)
		return try
	}
	low, high := 0, steps // the first step that suffices is in (low, high]; if none does it is high
	best := at(high)
	for met := p.measured(best) <= p.goal.target; met && high-low > 1; {
		middle := (low + high) / 2
		if try := at(middle); p.measured(try) <= p.goal.target {
			high, best = middle, try
		} else {
			low = middle
		}
	}
	p.tell(k, best)
	*k = *best
	return k.total <= p.goal.target
}

// tell names the tiers of the edits that next has and was has not.
func (p *planner) tell(was, next *work) {
	for i, list := range next.at {
		for _, r := range list[min(len(was.at[i]), len(list)):] {
			switch {
			case r.Op == opArguments:
				p.name(TierArguments)
			case r.Op == opShorten:
				p.name(TierResults)
			case r.Op == opLong:
				p.name(TierLong)
			}
		}
	}
}

// cut cuts each message that is longer than its length.
func (p *planner) cut(k *work, prot *protection, c caps, from int) {
	for i := range k.v.items {
		if i < from && i >= k.v.lead || i < k.v.lead && !p.cramped {
			continue
		}
		it, of := &k.v.items[i], prot.of[i]
		over := func(n, most int) bool { return float64(n) > slack*float64(most) }
		if over(len(it.text), c.large) && k.tokens[i] > p.largest() && (it.result && of&^(protectRecent|protectError) == 0 || it.Role == transcript.RoleUser && !it.summary()) {
			k.add(i, recipe{Op: opLong, A: uint32(c.large)}, minSaving)
			continue
		}
		if of != 0 {
			continue
		}
		switch {
		case it.result && (over(len(it.text), c.result) || it.shape.Media > 0):
			k.add(i, recipe{Op: opShorten, A: uint32(c.result)}, minSaving)
		case it.Role == transcript.RoleAssistant && over(len(it.text), c.said):
			k.add(i, recipe{Op: opLong, A: uint32(c.said)}, minSaving)
		}
		for _, call := range it.calls {
			if over(len(call.text), c.args) {
				k.add(i, recipe{Op: opArguments, A: uint32(c.args)}, minSaving)
				break
			}
		}
	}
}
