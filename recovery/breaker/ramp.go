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
	until   time.Time // end of the cool-down
	step    time.Duration
	started int // requests since then
}

// rampSteps is the number of steps of a ramp. At its end 64 requests may have started, and there is no limit any more.
const rampSteps = 6

// rampStep returns the duration of a step: a quarter of the cool-down, between 1 ms and 500 ms.
func rampStep(cooldown time.Duration) time.Duration {
	return max(min(cooldown/4, 500*time.Millisecond), time.Millisecond)
}

// next returns when another request may start; zero means now.
func (r *ramp) next(now time.Time) time.Time {
	n := max(0, now.Sub(r.until)/r.step)
	if n >= rampSteps || r.started < 1<<n {
		return time.Time{}
	}
	return r.until.Add((n + 1) * r.step)
}

// cooling returns when a request to a target may start that is in its cool-down, or that has started all requests of the
// current step of the ramp; ok is false if it may start now. The caller holds the set's lock.
func (s *Set) cooling(t recovery.Target, now time.Time) (until time.Time, ok bool) {
	if !s.board.Any(BoardCooldowns) {
		return time.Time{}, false
	}
	f, ok := s.board.Lookup(BoardCooldowns, s.names.Of(t))
	_, begin, end := coolingOf(f)
	if !ok || end.After(now.Add(s.cfg.CooldownMax+skew)) {
		return time.Time{}, false
	}
	if now.Before(end) {
		return end, true
	}
	k, ok := s.keys.Get(t)
	if !ok || end.After(k.until) {
		k = &ramp{until: end, step: rampStep(end.Sub(begin))}
		s.keys.Put(t, k, 1)
	}
	next := k.next(now)
	if next.IsZero() {
		return time.Time{}, false
	}
	return next.Add(rand.N(k.step/4 + 1)), true // so that waiting requests do not check at the same moment
}
