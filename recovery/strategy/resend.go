package strategy

import "github.com/rebound-llm/rebound/recovery"

// Resend sends the same bytes to the same target again, after a random
// pause that grows. While another target exists one resend is enough, and a target
// or host that never answered gets none. Where all were asked twice, they take turns.
type Resend struct{}

// Name is the name that plans use.
func (Resend) Name() string { return "resend" }

// Propose implements recovery.Strategy.
func (Resend) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	if f.Signal.RetryAfter > 0 { // how long to wait is not ours to say then
		return recovery.Action{}, false
	}
	if _, ok := s.Next(f, nil); ok {
		if c.Tries > 1 || c.Silent || c.Unusable() || f.NeverAnswered {
			return recovery.Action{}, false
		}
	} else if i = rarest(s, i); i < 0 {
		return recovery.Action{}, false
	}
	wait := s.Backoff(s.Exchange.Candidates[i].Tries - 1)
	return recovery.Action{Target: i, Wait: wait, Resend: true, Note: smallerStep(s.Exchange, f)}, true
}

// rarest is the candidate that was asked least, the current one among equals; -1 where
// none can serve the request.
func rarest(s *recovery.Situation, current int) int {
	best := -1
	better := func(i int) bool {
		c := &s.Exchange.Candidates[i]
		return !c.Unusable() && (best < 0 || c.Tries < s.Exchange.Candidates[best].Tries)
	}
	if better(current) {
		best = current
	}
	for i := range s.Exchange.Candidates {
		// Only an outage takes turns: a target that was never asked does not suit, or may not be.
		if c := &s.Exchange.Candidates[i]; c.Tries > 0 && !c.Silent && better(i) {
			best = i
		}
	}
	return best
}
