package strategy

import "github.com/rebound-llm/rebound/recovery"

// Fit shortens a request that does not fit its target's context window, and sends it to the same target again.
func Fit(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	i := s.Current(f)
	if s.Exchange.Candidates[i].Excluded || f.Released > recovery.ReleasedNothing {
		return recovery.Action{}, false
	}
	return recovery.Action{Target: i, Fit: true}, true
}
