package strategy

import "github.com/rebound-llm/rebound/recovery"

// LargerWindow moves a request that is too long to a target whose window is
// known to be larger. Where there is none, a target of unknown window is asked
// once: a refusal costs nothing. One that is known to be no larger is never asked.
type LargerWindow struct{}

// Name is the name that plans use.
func (LargerWindow) Name() string { return "larger_window" }

// Propose implements recovery.Strategy.
func (LargerWindow) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	need := max(f.Facts.LimitTokens, f.Facts.RequestedTokens-1, f.Facts.InputTokens)
	if need == 0 {
		need = s.Exchange.Candidates[s.Current(f)].Window
	}
	i, ok := s.Next(f, func(c *recovery.Choice) bool { return need > 0 && c.Window > need })
	if !ok {
		i, ok = s.Next(f, func(c *recovery.Choice) bool {
			return c.Window == 0 && c.Tries == 0 && (c.Upstream != f.Target.Upstream || c.Model != f.Target.Model)
		})
	}
	return recovery.Action{Target: i}, ok
}
