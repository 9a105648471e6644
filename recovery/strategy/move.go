package strategy

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// Move goes to the next key or target that may be asked now. Failures that are
// no outage and no limit move only where the configuration says so.
type Move struct{}

// Name is the name that plans use.
func (Move) Name() string { return "move" }

// Propose implements recovery.Strategy.
func (Move) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	class := f.Class()
	if f.Flaw != nil {
		return recovery.Action{}, false // another model is no answer to a flawed call
	}
	i, ok := s.Next(f, func(c *recovery.Choice) bool {
		switch class {
		case recovery.ModelNotFound, recovery.ContentPolicy, recovery.InvalidRequest:
			return slices.Contains(c.Fallback, class)
		case recovery.UnsupportedParameter:
			return c.Upstream != f.Target.Upstream || c.Model != f.Target.Model
		}
		return true
	})
	return recovery.Action{Target: i, Note: smallerStep(s.Exchange, f)}, ok
}
