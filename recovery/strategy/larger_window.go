package strategy

import "github.com/rebound-llm/rebound/recovery"

// LargerWindow moves a request that is too long to a target whose window is
// known to be larger, and never to one that is not.
type LargerWindow struct{}

// Name is the name that plans use.
func (LargerWindow) Name() string { return "larger_window" }

// Propose implements recovery.Strategy.
func (LargerWindow) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	need := max(f.Facts.LimitTokens, f.Facts.RequestedTokens-1, f.Facts.InputTokens)
	if need == 0 {
		need = s.Exchange.Candidates[s.Current(f)].Window
	}
	if need == 0 {
		return recovery.Action{}, false
	}
	i, ok := s.Next(f, func(c *recovery.Choice) bool { return c.Window > need })
	return recovery.Action{Target: i}, ok
}
