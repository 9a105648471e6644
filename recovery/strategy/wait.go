package strategy

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Wait waits as long as the upstream asks, whatever its status, and longer where that was not
// enough; after a rate limit without a hint, for a time that doubles. While another target may be
// asked it waits once, and not long. Where all targets ask to wait, the one
// that is ready first is asked.
type Wait struct{}

// Name is the name that plans use.
func (Wait) Name() string { return "wait" }

// Propose implements recovery.Strategy.
func (Wait) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	wait := f.Signal.RetryAfter
	stated := wait > 0
	switch {
	case stated && f.Class() != recovery.RateLimit && c.Waits >= maxBroken:
		// What it said did not hold, again and again: from here on as if it said nothing.
		if own := min(s.Config.BackoffMin<<min(c.Waits, 16), s.Config.BackoffMax); own > wait {
			wait, stated = own, false
		}
	case !stated:
		if f.Class() != recovery.RateLimit {
			return recovery.Action{}, false
		}
		// No hint, or "now", which must not become a tight loop.
		wait = s.Config.RateLimitWait << min(c.Waits, 16)
		wait = max(s.Config.RateLimitWait, min(wait, s.Config.BackoffMax))
	}
	limit := s.Config.WaitMax
	if _, ok := s.Next(f, nil); ok {
		if c.Waits > 0 || c.Tries > 1 {
			return recovery.Action{}, false
		}
		limit = s.Config.WaitSame
	} else {
		other, sooner := soonest(s, i, wait)
		stated = stated || other != i
		i, wait = other, sooner
	}
	if wait > limit {
		return recovery.Action{}, false
	}
	// Never earlier than asked; a little later, so that the requests that wait
	// for the same moment do not arrive in the same moment.
	wait += time.Duration(s.Jitter() * float64(min(wait/10, time.Second)))
	return recovery.Action{Target: i, Wait: wait, Stated: stated}, true
}

// maxBroken is how often a server that is out of order may name a time at which it still is.
const maxBroken = 2

// soonest is the candidate whose cool-down ends first, if that is before the
// current one's wait is over.
func soonest(s *recovery.Situation, current int, wait time.Duration) (int, time.Duration) {
	first := current
	for i := range s.Exchange.Candidates {
		c := &s.Exchange.Candidates[i]
		if i == current || c.Unusable() || c.Silent {
			continue
		}
		if st := s.Health.Check(c.Target); st.Cooling && st.Until.Sub(s.Now) < wait {
			first, wait = i, st.Until.Sub(s.Now)
		}
	}
	return first, wait
}
