package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// environmental are the kinds of failures that a computer causes, or who set it up;
// the others are the model's own mistakes.
var environmental = []recovery.Category{recovery.CommandNotFound, recovery.PermissionDenied, recovery.ToolTimeout, recovery.FileNotFound,
	recovery.NetworkError, recovery.ToolRateLimited, recovery.DiskFull}

const (
	// brokenKinds is how many different kinds must fail for the environment to be to
	// blame, within brokenTurns turns.
	brokenKinds = 3
	brokenTurns = 6
)

// environment is the kinds of failures, the newest first, of which so many occurred
// within the last turns that the environment seems broken; nil where it does not: a
// third of the results succeeded, or a person spoke.
func (h *history) environment(least float64) []recovery.Category {
	kinds, first := h.broken(len(h.turns)-1, h.since(brokenTurns), least), h.since(lookBack)
	for k := len(h.turns) - 2; k >= first && kinds != nil; k-- {
		if h.broken(k, max(first, k-brokenTurns+1), least) != nil {
			return nil // it is told once
		}
	}
	return kinds
}

// broken is the kinds of failures of the turns from first to k.
func (h *history) broken(k, first int, least float64) (kinds []recovery.Category) {
	failed, succeeded := 0, 0
	for ; k >= first; k-- {
		steps := h.summary(k).steps
		for i := range steps {
			f := &steps[i].verdict
			switch {
			case !f.Failed:
				succeeded++
			case f.Confidence >= least && slices.Contains(environmental, f.Category):
				failed++
				if !slices.Contains(kinds, f.Category) {
					kinds = append(kinds, f.Category)
				}
			}
		}
		if len(kinds) >= brokenKinds && failed > 2*succeeded {
			return kinds
		}
	}
	return nil
}
