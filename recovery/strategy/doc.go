// Package strategy contains the ways to retry a failed attempt, one file for each. A strategy is pure: it reads the
// situation and a failure and describes the next attempt. It does not decide when it is asked: package classify's table
// lists the strategies of each class, in order.
package strategy

import "github.com/rebound-llm/rebound/recovery"

// All returns every strategy. Their order does not matter, since a class's plan has its own.
func All() []recovery.Strategy {
	return []recovery.Strategy{Resend{}, Wait{}, Move{}, LargerWindow{}, ClampOutput{}, AdaptParameter{}, Resume{}, Fit{}, Reask{}, Explain{},
		MendHistory{}, TrimSchema{}, DropMedia{}, DropReasoning{}}
}
