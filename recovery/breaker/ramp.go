package breaker

import (
	"math/rand/v2"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// ramp lets requests to one credential start again after a cool-down: one at its end, and
// twice as many each rampStep, whatever becomes of them. Those that waited together would
// otherwise run into the next limit together. Replicas ramp at the same time, since the end
// stays on the board until the ramp is over; each counts its own requests.
type ramp struct {
	until   time.Time // end of the newest cool-down seen
	started int       // requests since then
}

const (
	rampStep   = 500 * time.Millisecond
	rampSteps  = 6 // 64 requests have started by then: the key is as any other
	rampLength = rampSteps * rampStep
)

// next is when another request may start; zero is now.
func (r *ramp) next(now time.Time) time.Time {
	step := max(0, now.Sub(r.until)/rampStep)
	if r.started < 1<<step {
		return time.Time{}
	}
	return r.until.Add((step + 1) * rampStep)
}

// ramping reports whether a key that cooled down lately has started all that it may for now,
// and when to look again. The set's lock is held.
func (s *Set) ramping(t recovery.Target, now time.Time) (again time.Time, full bool) {
	k, ok := s.keys[t]
	if !ok {
		return time.Time{}, false
	}
	if !now.Before(k.until.Add(rampLength)) {
		delete(s.keys, t)
		return time.Time{}, false
	}
	next := k.next(now)
	if next.IsZero() {
		return time.Time{}, false
	}
	return next.Add(rand.N(rampStep / 4)), true // not all look in the same moment
}

// cooled remembers a cool-down, so that its end is a ramp.
func (s *Set) cooled(t recovery.Target, until, now time.Time) {
	k, ok := s.keys[t]
	if !ok {
		if !now.Before(until.Add(rampLength)) {
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
	if until.After(k.until) {
		*k = ramp{until: until}
	}
}
