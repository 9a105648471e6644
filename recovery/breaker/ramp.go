package breaker

import (
	"math/rand/v2"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// ramp limits how many requests to one credential start after a cool-down: one at its end, and twice as many after each
// step, whatever their outcome. Otherwise all waiting requests would hit the next limit together. All replicas ramp at the
// same time, since the end stays on the board until the ramp ends; each counts its own requests.
type ramp struct {
	until   time.Time // end of the newest cool-down seen
	step    time.Duration
	started int // requests since then
}

// rampSteps is the number of steps of a ramp. At its end 64 requests may have started, and there is no limit any more.
const rampSteps = 6

// rampStep returns the duration of a step: a quarter of the cool-down, between 1 ms and 500 ms.
func rampStep(cooldown time.Duration) time.Duration {
	return max(min(cooldown/4, 500*time.Millisecond), time.Millisecond)
}

func (r *ramp) over(now time.Time) bool { return !now.Before(r.until.Add(rampSteps * r.step)) }

// next returns when another request may start; zero means now.
func (r *ramp) next(now time.Time) time.Time {
	n := max(0, now.Sub(r.until)/r.step)
	if r.started < 1<<n {
		return time.Time{}
	}
	return r.until.Add((n + 1) * r.step)
}

// ramping reports whether a key in its ramp has already started all requests that it may start for now, and when to check
// again. The caller holds the set's lock.
func (s *Set) ramping(t recovery.Target, now time.Time) (again time.Time, full bool) {
	k, ok := s.keys.Get(t)
	if !ok {
		return time.Time{}, false
	}
	if k.over(now) {
		s.keys.Delete(t)
		return time.Time{}, false
	}
	next := k.next(now)
	if next.IsZero() {
		return time.Time{}, false
	}
	return next.Add(rand.N(k.step/4 + 1)), true // so that waiting requests do not check at the same moment
}

// cooled stores the ramp that follows a cool-down.
func (s *Set) cooled(t recovery.Target, next ramp, now time.Time) {
	if k, ok := s.keys.Get(t); !ok && !next.over(now) || ok && next.until.After(k.until) {
		s.keys.Put(t, &next, 1)
	}
}
