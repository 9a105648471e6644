package breaker

import (
	"math/rand/v2"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// ramp lets requests to one credential start again after a cool-down: one at its end, and
// twice as many each step, whatever becomes of them. Those that waited together would
// otherwise run into the next limit together. Replicas ramp at the same time, since the end
// stays on the board until the ramp is over; each counts its own requests.
type ramp struct {
	until   time.Time // end of the newest cool-down seen
	step    time.Duration
	started int // requests since then
}

// rampSteps end a ramp: 64 requests have started by then, and the key is as any other.
const rampSteps = 6

// rampStep is the step of the ramp after a cool-down: a short one says little of a limit.
func rampStep(cooldown time.Duration) time.Duration {
	return max(min(cooldown/4, 500*time.Millisecond), time.Millisecond)
}

func (r *ramp) over(now time.Time) bool { return !now.Before(r.until.Add(rampSteps * r.step)) }

// next is when another request may start; zero is now.
func (r *ramp) next(now time.Time) time.Time {
	n := max(0, now.Sub(r.until)/r.step)
	if r.started < 1<<n {
		return time.Time{}
	}
	return r.until.Add((n + 1) * r.step)
}

// ramping reports whether a key that cooled down lately has started all that it may for now,
// and when to look again. The set's lock is held.
func (s *Set) ramping(t recovery.Target, now time.Time) (again time.Time, full bool) {
	k, ok := s.keys[t]
	if !ok {
		return time.Time{}, false
	}
	if k.over(now) {
		delete(s.keys, t)
		return time.Time{}, false
	}
	next := k.next(now)
	if next.IsZero() {
		return time.Time{}, false
	}
	return next.Add(rand.N(k.step/4 + 1)), true // not all look in the same moment
}

// cooled remembers a cool-down, so that its end is a ramp.
func (s *Set) cooled(t recovery.Target, next ramp, now time.Time) {
	k, ok := s.keys[t]
	if !ok {
		if next.over(now) {
			return
		}
		if len(s.keys) >= maxTargets {
			for o := range s.keys {
				delete(s.keys, o)
				break
			}
		}
		k = &ramp{}
		s.keys[t] = k
	}
	if next.until.After(k.until) {
		*k = next
	}
}
