// Package strategy holds the ways to try a failed attempt again, one file for
// each. A strategy is pure: it looks at the situation and a failure and
// describes the next attempt. Which class asks which strategies, and in which
// order, is a row of package classify's table.
package strategy

import "github.com/rebound-llm/rebound/recovery"

// All returns every strategy. The order does not matter: a class's plan names
// the order in which they are asked.
func All() []recovery.Strategy {
	return []recovery.Strategy{Resend{}, Wait{}, Move{}, LargerWindow{}, ClampOutput{}, AdaptParameter{}, Resume{}, Fit{}, Reask{}, Explain{},
		MendHistory{}, TrimSchema{}, DropMedia{}, DropReasoning{}}
}
