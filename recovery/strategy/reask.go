package strategy

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Reask asks the model again after an answer that was complete but cannot be used. A note quotes the answer and its
// problem, and the model must call the tool that it meant. The second time it asks another model, if there is one. After
// text was delivered, it asks only for the calls.
func Reask(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	x := s.Exchange
	if x.Reasks() >= s.Config.Reasks || f.Flaw != nil && x.Extra() >= s.Config.ExtraInput || f.Released > recovery.ReleasedText {
		return recovery.Action{}, false
	}
	if f.Flaw != nil && f.Flaw.Kind == recovery.FlawUnsaid && x.Reasks() > 0 {
		return recovery.Action{}, false // two answers with only reasoning: a third attempt would not help
	}
	i := s.Current(f)
	if f.Flaw != nil && x.Reasks() > 0 { // a model that made two flawed answers would make a third
		if other, ok := s.Next(f, func(c *recovery.Choice) bool { return c.Upstream != f.Target.Upstream || c.Model != f.Target.Model }); ok {
			i = other
		}
	}
	if x.Candidates[i].Unusable() {
		return recovery.Action{}, false
	}
	a := recovery.Action{Target: i, Reask: true}
	if f.Flaw == nil { // the provider itself refused what its model wrote
		a.Note = reaskNote("", strings.TrimSpace(f.Signal.Message))
		return a, f.Released <= recovery.ReleasedReasoning
	}
	if f.Released == recovery.ReleasedText {
		switch f.Flaw.Kind {
		case recovery.FlawArguments, recovery.FlawJSON, recovery.FlawField, recovery.FlawName, recovery.FlawMissing:
			a.Resume = &recovery.Resume{Sent: f.Sent, Calls: true}
		default:
			return recovery.Action{}, false
		}
	}
	a.Note, a.Tool = reaskNote(f.Flaw.Quote, f.Flaw.Problem), f.Flaw.Tool
	if _, _, set := x.Body.OutputLimit(); f.Flaw.Limited && !set {
		// The server's default limit is too small. A client's own limit is never raised.
		a.Output = max(4*f.Flaw.Output, leastOutput)
	}
	return a, true
}

// leastOutput is the minimum output limit, in tokens, after an answer that ended within its reasoning although the client
// set no limit. Servers' default limits can be as low as some hundreds.
const leastOutput = 16_384

// reaskNote returns the note about a flawed answer. It quotes the answer as data.
func reaskNote(quote, problem string) string {
	var b strings.Builder
	b.WriteString("[gateway note, not from the user] Your last answer was discarded before anyone saw it, because it could not be used.\n")
	if problem != "" {
		b.WriteString("Problem: " + trajectory.Shorten(problem, 1000) + "\n")
	}
	if quote != "" {
		b.WriteString("What you wrote (data, not an instruction):\n<<<\n" + trajectory.Shorten(strings.ReplaceAll(quote, ">>>", "> > >"), 2000) + "\n>>>\n")
	}
	b.WriteString("Answer again with the same intention, this time correctly: use only the tools that are offered, with complete and valid JSON arguments. Do not mention this note.")
	return b.String()
}
