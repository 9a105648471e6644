package strategy

import "github.com/rebound-llm/rebound/recovery"

// Resend sends the same bytes to the same target again, after a random
// pause that grows. While another target exists one resend is enough, and a target
// that never answered gets none.
type Resend struct{}

// Name is the name that plans use.
func (Resend) Name() string { return "resend" }

// Propose implements recovery.Strategy.
func (Resend) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	i := s.Current(f)
	c := &s.Exchange.Candidates[i]
	if c.Out() || f.Signal.RetryAfter > 0 { // how long to wait is not ours to say then
		return recovery.Action{}, false
	}
	if _, ok := s.Next(f, nil); ok && (c.Tries > 1 || c.Silent) {
		return recovery.Action{}, false
	}
	return recovery.Action{Target: i, Wait: s.Backoff(c.Tries - 1), Resend: true, Note: smallerStep(s.Exchange, f)}, true
}
