package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
)

// What followed a turn's failure, as the cause of guidance_outcome.
const (
	OutcomeRecovered = "recovered" // a success
	OutcomeRepeated  = "repeated"  // the same failure
	OutcomeOther     = "other"     // other failures
)

// Outcomes learn what followed failures.
type Outcomes interface {
	// Open reports whether something still waits to be told of a session. It is asked for every
	// request with results.
	Open(session string) bool
	// After is told what followed a failure; the same may be told again. It never blocks.
	After(recovery.After)
}

const (
	// lastTold is of how many turns at the end it is told what followed.
	lastTold = 3
	// maxAfter bounds how many failures of one turn are told of.
	maxAfter = 4
)

// failureBefore is the previous turn's failure that the model may have been told
// of, nil without one and where a person spoke since.
func (s *Stage) failureBefore(h *history) *recovery.ToolFailure {
	k := len(h.turns) - 2
	if k < 0 || h.personSpoke(k) {
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

// reportAfter tells what followed the last turns: their failures, or, where something is
// still awaited, turns in which nothing failed, as agents go round in circles in these, too.
func (s *Stage) reportAfter(x *recovery.Exchange, h *history) {
	open := s.Outcomes.Open(x.Session)
	var gains []gain
	if open {
		gains, _ = h.gains()
	}
	for k := len(h.turns) - 1; k >= max(0, len(h.turns)-lastTold); k-- {
		steps := h.load(k).steps
		if open && len(steps) > 0 && h.summary(k).print == 0 {
			s.reportSince(x, h, k, recovery.After{At: steps[len(steps)-1].Index}, func(j int, a *recovery.After) {
				for _, g := range gains {
					if g.turn == j {
						a.Calls++
						a.Target, a.Same = g.share == 1, g.share == 0
					}
				}
			})
		}
		told := 0
		for i := range steps {
			st := &steps[i]
			f := st.judge()
			if !f.Failed || told == maxAfter {
				continue
			}
			told++
			s.reportSince(x, h, k, recovery.After{At: f.Index, Fingerprint: f.Fingerprint}, func(j int, a *recovery.After) {
				if len(h.load(j).steps) > 0 {
					a.Calls++
					h.load(j).compare(st, a)
				}
			})
		}
	}
}

// reportSince reports what the turns after turn k brought, if any followed; weigh adds to it what
// one turn did.
func (s *Stage) reportSince(x *recovery.Exchange, h *history, k int, a recovery.After, weigh func(j int, a *recovery.After)) {
	for j := k; j < len(h.turns); j++ {
		if j > k {
			weigh(j, &a)
		}
		if a.Target || a.Same {
			break
		}
		if h.personSpoke(j) {
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

// compare adds what the turn's steps did about one that had failed.
func (t *turn) compare(failed *step, a *recovery.After) {
	for i := range t.steps {
		s := &t.steps[i]
		f := s.judge()
		switch {
		case f.Failed:
			a.Same = a.Same || f.Fingerprint == failed.verdict.Fingerprint
		case achieves(&failed.made, &s.made):
			a.Target = true
		default:
			a.Some, a.Again = true, a.Again || runsAgain(&failed.made, &s.made)
		}
	}
}
