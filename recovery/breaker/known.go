package breaker

import (
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// refusal is what a target last said to a credential whose quota is used up. It is the
// answer to every request that cannot go elsewhere until it is over; then one request finds
// out whether that still holds.
type refusal struct {
	failure *recovery.Failure
	until   time.Time
}

const (
	refusalTime = 30 * time.Second
	maxRefusal  = 16 << 10 // a larger answer is not kept, in bytes
)

// remember keeps a refusal for want of quota, by credential, upstream and model. Only a
// status that a client's words cannot bring about counts. The set's lock is held.
func (s *Set) remember(t recovery.Target, o recovery.Outcome, now time.Time) {
	f := o.Failure
	if o.Success || f != nil && f.Signal.Phase >= recovery.PhaseBody { // it was served, however badly
		delete(s.refusals, t)
	}
	if f == nil || f.Class() != recovery.QuotaExhausted || t.Key == "" || len(f.Response.Body) > maxRefusal {
		return
	}
	switch f.Response.Status {
	case http.StatusPaymentRequired, http.StatusForbidden, http.StatusTooManyRequests:
	default:
		return
	}
	if len(s.refusals) >= maxTargets {
		for old := range s.refusals {
			delete(s.refusals, old)
			break
		}
	}
	known := &recovery.Failure{Diagnosis: f.Diagnosis, Target: t, Response: f.Response}
	s.refusals[t] = &refusal{known, now.Add(refusalTime)}
}

// refused is the answer that is known, nil where it has to be found out.
func (s *Set) refused(t recovery.Target, now time.Time) (f *recovery.Failure, until time.Time) {
	if r := s.refusals[t]; r != nil && now.Before(r.until) {
		return r.failure, r.until
	}
	return nil, time.Time{}
}

// probing lets one request find out what holds; the others get the known answer meanwhile.
func (s *Set) probing(t recovery.Target, now time.Time) {
	if r := s.refusals[t]; r != nil && !now.Before(r.until) {
		r.until = now.Add(refusalTime)
	}
}
