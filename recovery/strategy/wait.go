package strategy

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Wait waits as long as the upstream asks, whatever its status, and longer if that was not enough; after a rate limit
// without a hint, it waits for a time that doubles. While another target is available it waits only once, for WaitSame at
// most. If all targets are cooling down, it chooses the one that is ready first.
func Wait(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if forbidsRetry(f) {
		return recovery.Action{}, false
	}
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	wait := f.Signal.RetryAfter
	stated := wait > 0
	switch {
	case stated && f.Class() != recovery.RateLimit && c.Waits >= maxStatedWaits:
		// The stated times were wrong repeatedly, so the backoff applies.
		if own := min(s.Config.BackoffMin<<min(c.Waits, 16), s.Config.BackoffMax); own > wait {
			wait, stated = own, false
		}
	case !stated:
		if f.Class() != recovery.RateLimit {
			return recovery.Action{}, false
		}
		// Without a hint, or with "now", the wait must not become a tight loop.
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
	// The retry comes a little later than the upstream asks, so that requests that wait for the same moment do not arrive
	// together.
	wait += time.Duration(s.Jitter() * float64(min(wait/10, time.Second)))
	return recovery.Action{Target: i, Wait: wait, Stated: stated}, true
}

// maxStatedWaits limits how often a stated wait is trusted after failures other than rate limits, since a broken server
// may state times at which it still fails.
const maxStatedWaits = 2

// soonest returns the candidate whose cool-down ends first, with the time until then; the current one and its wait if no
// cool-down ends earlier.
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

// forbidsRetry reports whether the upstream says that asking it again is of no use, in the header that SDKs obey.
func forbidsRetry(f *recovery.Failure) bool {
	return f.Response.Header.Get("X-Should-Retry") == "false"
}
