package strategy

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// Move sends the request to the next available key or target. After a refusal of the request it does so only for the
// classes that the configuration or the code below allows.
func Move(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	class := f.Class()
	if f.Flaw != nil {
		return recovery.Action{}, false // Reask handles flawed answers
	}
	i, ok := s.Next(f, func(c *recovery.Choice) bool {
		other := c.Upstream != f.Target.Upstream || c.Model != f.Target.Model // and not only another key
		switch class {
		case recovery.InvalidRequest:
			return other && (onlyElsewhere(f) || slices.Contains(c.Fallback, class))
		case recovery.ModelNotFound, recovery.ContentPolicy:
			return other && slices.Contains(c.Fallback, class)
		case recovery.InvalidToolSchema, recovery.UnsupportedParameter:
			return other
		}
		return true
	})
	return recovery.Action{Target: i, Note: smallerStep(s.Exchange, f)}, ok
}

// onlyElsewhere reports whether only another target can help, because no edit may change what this one refuses: too many
// tools, or an answer whose beginning the client has given.
func onlyElsewhere(f *recovery.Failure) bool {
	text := strings.ToLower(f.Signal.Message)
	return containsAny(text, []string{"prefill", "pre-fill", "must end with a user message", "last message must be from the user", "final message must be from the user"}) ||
		strings.Contains(text, "tools") && containsAny(text, []string{"maximum number of items", "too many tools", "maximum number of tools", "array too long", "at most 128", "at most 64",
			"maximum length 128", "maximum of 128", "number of tools", "more than 128"})
}
