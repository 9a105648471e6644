package strategy

import "github.com/rebound-llm/rebound/recovery"

// Resend sends the same bytes to the same target again, after a random wait that grows. While another target is
// available, a target gets only one resend, and none if it was silent or never answered. If no other target is left, the
// targets take turns.
func Resend(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	if f.Signal.RetryAfter > 0 || forbidsRetry(f) { // the upstream states the wait: see Wait
		return recovery.Action{}, false
	}
	if _, ok := s.Next(f, nil); ok {
		if c.Tries > 1 || c.Silent || c.Unusable() || f.NeverAnswered {
			return recovery.Action{}, false
		}
	} else if i = leastTried(s, i); i < 0 {
		return recovery.Action{}, false
	}
	wait := s.Backoff(s.Exchange.Candidates[i].Tries - 1)
	return recovery.Action{Target: i, Wait: wait, Resend: true, Note: smallerStep(s.Exchange, f)}, true
}

// leastTried returns the candidate with the fewest attempts, preferably the current one; -1 if none can serve the request.
func leastTried(s *recovery.Situation, current int) int {
	best := -1
	better := func(i int) bool {
		c := &s.Exchange.Candidates[i]
		return !c.Unusable() && (best < 0 || c.Tries < s.Exchange.Candidates[best].Tries)
	}
	if better(current) {
		best = current
	}
	for i := range s.Exchange.Candidates {
		// A target without any attempt is not allowed for this failure.
		if c := &s.Exchange.Candidates[i]; c.Tries > 0 && !c.Silent && better(i) {
			best = i
		}
	}
	return best
}
