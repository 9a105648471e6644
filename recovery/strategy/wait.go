package strategy

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Wait waits for the same target as long as it asks, or, without a hint, for a
// time that doubles. While another target exists it waits once, and not long.
type Wait struct{}

// Name is the name that plans use.
func (Wait) Name() string { return "wait" }

// Propose implements recovery.Strategy.
func (Wait) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	wait := f.Signal.RetryAfter
	if wait <= 0 {
		// No hint, or "now", which must not become a tight loop.
		wait = s.Config.RateLimitWait << min(c.Waits, 16)
		wait = max(s.Config.RateLimitWait, min(wait, s.Config.WaitMax))
	}
	limit := s.Config.WaitMax
	if _, ok := s.Next(f, nil); ok {
		if c.Waits > 0 {
			return recovery.Action{}, false
		}
		limit = s.Config.WaitSame
	}
	if wait > limit {
		return recovery.Action{}, false
	}
	// Never earlier than asked; a little later, so that the requests that wait
	// for the same moment do not arrive in the same moment.
	wait += time.Duration(s.Jitter() * float64(min(wait/10, time.Second)))
	return recovery.Action{Target: i, Wait: wait}, true
}
