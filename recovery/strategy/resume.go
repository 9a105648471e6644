package strategy

import "github.com/rebound-llm/rebound/recovery"

// Resume completes an answer whose beginning the client already has: with a
// target that continues a given beginning (prefill), else by a replay, which
// counts only if it repeats what was sent. Where only reasoning was shown, or
// nothing, resending and moving do the same without it.
type Resume struct{}

// Name is the name that plans use.
func (Resume) Name() string { return "resume" }

// Propose implements recovery.Strategy.
func (Resume) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	x := s.Exchange
	if f.Released != recovery.ReleasedText || f.Sent == "" || x.Extra() >= s.Config.ExtraInput {
		return recovery.Action{}, false
	}
	current := s.Current(f)
	askable := func(i int) bool {
		c := &x.Candidates[i]
		return !c.Out() && (i == current || s.Health.Check(c.Target).Ready)
	}
	// A declared prefill is sure to fit; a replay is a hope, on the same model.
	for _, i := range order(x, current) {
		if c := &x.Candidates[i]; askable(i) && prefills(c) {
			return recovery.Action{Target: i, Resume: &recovery.Resume{Sent: f.Sent, Way: recovery.WayPrefill}}, true
		}
	}
	for _, i := range order(x, current) {
		if c := &x.Candidates[i]; askable(i) && !c.Replayed {
			a := recovery.Action{Target: i, Resume: &recovery.Resume{Sent: f.Sent, Way: recovery.WayReplay}}
			if i == current && !f.Stalled {
				a.Wait = s.Backoff(0)
			}
			return a, true
		}
	}
	return recovery.Action{}, false
}

func prefills(c *recovery.Choice) bool {
	return c.Prefill != recovery.PrefillNone && c.Prefill != "" && !c.NoPrefill
}

// order is the current candidate first, then the others as they stand.
func order(x *recovery.Exchange, current int) []int {
	list := make([]int, 0, len(x.Candidates))
	list = append(list, current)
	for i := range x.Candidates {
		if i != current {
			list = append(list, i)
		}
	}
	return list
}
