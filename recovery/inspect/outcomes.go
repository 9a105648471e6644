package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// What followed a turn's failure, as causes of guidance_outcome.
const (
	OutcomeRecovered = "recovered" // a success
	OutcomeRepeated  = "repeated"  // the same failure
	OutcomeOther     = "other"     // other failures
)

// Outcomes learns from what followed failures.
type Outcomes interface {
	// Open reports whether an outcome is still awaited for the session. It is called for every request with results.
	Open(session string) bool
	// After receives what followed a failure, possibly more than once. It must not block.
	After(recovery.After)
}

const (
	// lastReported is the number of turns at the end whose outcomes are reported.
	lastReported = 3
	// maxAfter limits how many failures of one turn are reported.
	maxAfter = 4
)

// failureBefore returns the failure of the previous turn about which the model may have got a note, or nil if
// there is none or if the user spoke since.
func (s *Stage) failureBefore(h *history) *recovery.ToolFailure {
	k := len(h.turns) - 2
	if k < 0 || h.userSpoke(k) {
		return nil
	}
	steps := h.load(k).steps
	for i := range steps {
		if f := steps[i].judge(); f.Failed && f.Category != recovery.CategoryNone && f.Confidence >= s.cfg.MinConfidence {
			return f
		}
	}
	return nil
}

// reportOutcome reports what the model did after the previous turn's failure.
func (s *Stage) reportOutcome(x *recovery.Exchange, failure *recovery.ToolFailure) {
	outcome := OutcomeOther
	for i := range x.Results {
		if f := &x.Results[i]; !f.Failed {
			outcome = OutcomeRecovered
			break
		} else if f.Fingerprint == failure.Fingerprint {
			outcome = OutcomeRepeated
		}
	}
	ev := x.Event(recovery.EventGuidanceOutcome)
	ev.Cause, ev.Failure = outcome, withoutText(failure)
	ev.Advice = &recovery.Advice{Category: failure.Category, HeldOut: s.HeldOut != nil && x.Session != "" && s.HeldOut(x.Session)}
	s.observer.Observe(ev)
}

// reportAfter reports what followed the last turns: their failures and, if an outcome is awaited, also turns
// without a failure, because an agent may repeat itself in these, too.
func (s *Stage) reportAfter(x *recovery.Exchange, h *history) {
	open := s.Outcomes.Open(x.Session)
	var gains []gain
	if open {
		gains, _ = h.gains()
	}
	for k := len(h.turns) - 1; k >= max(0, len(h.turns)-lastReported); k-- {
		if steps := h.load(k).steps; open && len(steps) > 0 && h.summary(k).print == 0 {
			s.reportSince(x, h, k, recovery.After{At: steps[len(steps)-1].Index}, func(j int, a *recovery.After) {
				if i := slices.IndexFunc(gains, func(g gain) bool { return g.turn == j }); i >= 0 {
					a.Calls++
					a.Target, a.Same = gains[i].share == 1, gains[i].share == 0
				}
			})
		}
		s.reportFailures(x, h, k)
	}
}

// reportFailures reports what followed the failures of turn k.
func (s *Stage) reportFailures(x *recovery.Exchange, h *history, k int) {
	steps, reported := h.load(k).steps, 0
	for i := range steps {
		f := steps[i].judge()
		if !f.Failed || reported == maxAfter {
			continue
		}
		reported++
		s.reportSince(x, h, k, recovery.After{At: f.Index, Fingerprint: f.Fingerprint}, func(j int, a *recovery.After) {
			if t := h.load(j); len(t.steps) > 0 {
				a.Calls++
				t.compare(&steps[i], a)
			}
		})
	}
}

// reportSince reports what the turns after turn k brought, if there are any; add records the findings of one
// turn.
func (s *Stage) reportSince(x *recovery.Exchange, h *history, k int, a recovery.After, add func(j int, a *recovery.After)) {
	for j := k; j < len(h.turns); j++ {
		if j > k {
			add(j, &a)
		}
		if a.Target || a.Same {
			break
		}
		if h.userSpoke(j) {
			a.Stopped = len(h.load(j).steps) == 0
			a.Person = !a.Stopped
			break
		}
	}
	if a.Calls > 0 || a.Person || a.Stopped {
		a.Session = x.Session
		s.Outcomes.After(a)
	}
}

// compare adds to a what became of a failed step in this turn: the same failure, success at its target, or another success.
func (t *turn) compare(failed *step, a *recovery.After) {
	for i := range t.steps {
		s := &t.steps[i]
		f := s.judge()
		switch {
		case f.Failed:
			a.Same = a.Same || f.Fingerprint == failed.verdict.Fingerprint
		case achieves(&failed.call, &s.call):
			a.Target = true
		default:
			a.Some, a.Again = true, a.Again || runsAgain(&failed.call, &s.call)
		}
	}
}
