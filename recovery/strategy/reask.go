package strategy

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Reask asks the model again for an answer that was complete but cannot be
// used: with what it wrote and what is wrong with it as context, and bound to
// the tool that it meant; the second time another target, where there is one. What
// a person already saw is not asked for again: after text only calls are.
type Reask struct{}

// Name is the name that plans use.
func (Reask) Name() string { return "reask" }

// Propose implements recovery.Strategy.
func (Reask) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	x := s.Exchange
	if x.Reasks() >= s.Config.Reasks || f.Flaw != nil && x.Extra() >= s.Config.ExtraInput || f.Released > recovery.ReleasedText {
		return recovery.Action{}, false
	}
	if f.Flaw != nil && f.Flaw.Kind == recovery.FlawUnsaid && x.Reasks() > 0 {
		return recovery.Action{}, false // who thinks only, twice, has nothing to say
	}
	i := s.Current(f)
	if f.Flaw != nil && x.Reasks() > 0 { // who wrote it wrongly twice would do so again
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
		return a, f.Released == recovery.ReleasedNothing
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
		// The server's own limit is too small; a client's is never raised.
		a.Output = max(4*f.Flaw.Output, leastOutput)
	}
	return a, true
}

// leastOutput is the least output limit in tokens for a model that had none from
// its client, and did not get beyond thinking: servers' own begin at some hundreds.
const leastOutput = 16_384

// reaskNote tells the model what was wrong. What it wrote is quoted as data.
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
