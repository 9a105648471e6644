package inspect

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// environmental are the categories of failures that the computer or its setup causes; the others are the model's
// own mistakes. A command that takes too long says nothing about the computer.
var environmental = []recovery.Category{recovery.CommandNotFound, recovery.PermissionDenied, recovery.FileNotFound,
	recovery.NetworkError, recovery.ToolRateLimited, recovery.DiskFull}

const (
	// brokenKinds is how many categories must fail within brokenTurns turns for the environment to be the likely cause.
	brokenKinds = 3
	brokenTurns = 6
)

// environment returns the categories of recent failures, newest first, if there are enough of them that the environment
// seems broken, and nil otherwise or if that was reported before. It considers only turns since the user's last new
// message, and more than two thirds of the results must be such failures.
func (h *history) environment(least float64) []recovery.Category {
	kinds, first := h.broken(len(h.turns)-1, h.since(brokenTurns), least), h.since(lookBack)
	for k := len(h.turns) - 2; k >= first && kinds != nil; k-- {
		if h.broken(k, max(first, k-brokenTurns+1), least) != nil {
			return nil // this was already reported
		}
	}
	return kinds
}

// broken returns the categories of failures in the turns first to k, if they are enough.
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
