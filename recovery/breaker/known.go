package breaker

import (
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// refusal is a target's latest refusal of a credential whose quota is used up. Until it expires, requests that no other
// target can serve get it as their answer. Then one request tests whether the quota is still used up.
type refusal struct {
	failure *recovery.Failure
	until   time.Time
}

const (
	refusalTime = 30 * time.Second
	refusalTest = 3 * time.Second // a test that is not refused within this time has probably succeeded
	maxRefusal  = 16 << 10        // larger responses are not kept, in bytes
)

// remember stores a refusal because of a used-up quota, by credential, upstream and model. It ignores statuses that the
// content of a request may cause, and an upstream that would serve a smaller request. The caller holds the set's lock.
func (s *Set) remember(t recovery.Target, o recovery.Outcome, now time.Time) {
	f := o.Failure
	if o.Success || f != nil && f.Signal.Phase >= recovery.PhaseBody { // the target began to answer, so there is quota
		s.refusals.Delete(t)
	}
	if f == nil || f.Class() != recovery.QuotaExhausted || t.Key == "" || f.Facts.Affordable() || len(f.Response.Body) > maxRefusal {
		return
	}
	switch f.Response.Status {
	case http.StatusPaymentRequired, http.StatusForbidden, http.StatusTooManyRequests:
	default:
		return
	}
	known := &recovery.Failure{Diagnosis: f.Diagnosis, Target: t, Response: f.Response}
	s.refusals.Put(t, &refusal{known, now.Add(refusalTime)}, 1)
}

// refused returns the stored refusal and its end; nil if there is none or it has expired.
func (s *Set) refused(t recovery.Target, now time.Time) (f *recovery.Failure, until time.Time) {
	if r, ok := s.refusals.Get(t); ok && now.Before(r.until) {
		return r.failure, r.until
	}
	return nil, time.Time{}
}

// probing renews an expired refusal briefly when a request starts, so that this request tests the quota while others get the
// stored refusal. Refusals come quickly, but an answer may last for minutes.
func (s *Set) probing(t recovery.Target, now time.Time) {
	if r, ok := s.refusals.Get(t); ok && !now.Before(r.until) {
		r.until = now.Add(refusalTest)
	}
}
