package strategy

import "github.com/rebound-llm/rebound/recovery"

// ClampOutput lowers the requested output to the limit that the target states.
type ClampOutput struct{}

// Name is the name that plans use.
func (ClampOutput) Name() string { return "clamp_output" }

// Propose implements recovery.Strategy.
func (ClampOutput) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	field, n, ok := s.Exchange.Body.OutputLimit()
	limit := f.Facts.MaxOutputLimit
	if !ok || limit <= 0 || n <= limit {
		return recovery.Action{}, false
	}
	i := s.Current(f)
	if edited(&s.Exchange.Candidates[i], field) {
		return recovery.Action{}, false
	}
	return recovery.Action{Target: i, Edits: []recovery.Edit{{Field: field, Clamp: limit}}}, true
}

// edited reports whether this exchange already changed a field for a candidate.
func edited(c *recovery.Choice, field string) bool {
	for _, e := range c.Edits {
		if e.Field == field {
			return true
		}
	}
	return false
}
