package strategy

import (
	"slices"
	"strings"

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
		case recovery.InvalidRequest, recovery.InvalidToolSchema:
			if unmendable(f) {
				return c.Upstream != f.Target.Upstream || c.Model != f.Target.Model
			}
			return class == recovery.InvalidToolSchema || slices.Contains(c.Fallback, class)
		case recovery.ModelNotFound, recovery.ContentPolicy:
			return slices.Contains(c.Fallback, class)
		case recovery.UnsupportedParameter:
			return c.Upstream != f.Target.Upstream || c.Model != f.Target.Model
		}
		return true
	})
	return recovery.Action{Target: i, Note: smallerStep(s.Exchange, f)}, ok
}

// unmendable reports whether a target refuses what no edit may change and others take:
// more tools than it allows, an answer that the client has begun.
func unmendable(f *recovery.Failure) bool {
	text := strings.ToLower(f.Signal.Message)
	return containsAny(text, []string{"prefill", "pre-fill", "must end with a user message", "last message must be from the user", "final message must be from the user"}) ||
		strings.Contains(text, "tools") && containsAny(text, []string{"maximum number of items", "too many tools", "maximum number of tools", "array too long", "at most 128", "at most 64",
			"maximum length 128", "maximum of 128", "number of tools", "more than 128"})
}
