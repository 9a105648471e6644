package strategy

import "github.com/rebound-llm/rebound/recovery"

// LargerWindow moves a request that is too long to a target whose context window is known to be larger than the exceeded
// one or, if that is unknown, than the request's estimated tokens. If there is none, it tries a target of unknown window
// once, since a refusal costs nothing. It never tries a target whose window is known to be no larger.
func LargerWindow(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	need := max(f.Facts.LimitTokens, f.Facts.RequestedTokens-1, f.Facts.InputTokens)
	if need == 0 {
		need = s.Exchange.Candidates[s.Current(f)].Window
	}
	if need == 0 {
		need = len(s.Exchange.Body.Raw()) / 4
	}
	i, ok := s.Next(f, func(c *recovery.Choice) bool { return c.Window > need })
	if !ok {
		i, ok = s.Next(f, func(c *recovery.Choice) bool {
			return c.Window == 0 && c.Tries == 0 && (c.Upstream != f.Target.Upstream || c.Model != f.Target.Model)
		})
	}
	return recovery.Action{Target: i}, ok
}
