package strategy

import "github.com/rebound-llm/rebound/recovery"

// All returns every strategy. Their order does not matter, since a class's plan has its own.
func All() []recovery.Strategy {
	return []recovery.Strategy{Resend{}, Wait{}, Move{}, LargerWindow{}, ClampOutput{}, AdaptParameter{}, Resume{}, Fit{}, Reask{}, Explain{},
		ConformHistory{}, TrimSchema{}, DropMedia{}, DropReasoning{}}
}
