package strategy

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// ClampOutput lowers the requested output to the limit that the target states.
func ClampOutput(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	field, n, ok := s.Exchange.Body.OutputLimit()
	limit := f.Facts.MaxOutputLimit
	if !ok || limit <= 0 || n <= limit {
		return recovery.Action{}, false
	}
	i := s.Current(f)
	lower := recovery.Edit{Field: field, Clamp: limit}
	if slices.ContainsFunc(s.Exchange.Candidates[i].Edits, lower.Replaces) {
		return recovery.Action{}, false // this exchange has lowered it before
	}
	return recovery.Action{Target: i, Edits: []recovery.Edit{lower}}, true
}
