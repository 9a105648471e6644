package recovery

import (
	"errors"
	"time"
)

// Budget is what one session may use before it is stopped; zero means no limit. It stops runaway agents. It is no
// limit against clients, who can begin a new session at any time.
type Budget struct {
	Requests int           `yaml:"requests"`
	Tokens   int           `yaml:"tokens"`   // of the prompts and answers of all attempts
	Spending float64       `yaml:"spending"` // in the currency of the prices
	Duration time.Duration `yaml:"duration"` // since its first request
	// Per says what the budget applies to: each session, or all sessions of a credential together, for example
	// those of an agent and its sub-agents.
	Per BudgetScope `yaml:"per"`
}

// BudgetScope says whose use counts against a budget.
type BudgetScope string

// The scopes of a budget; empty means session.
const (
	PerSession    BudgetScope = "session"
	PerCredential BudgetScope = "credential"
)

// Any reports whether anything is limited.
func (b Budget) Any() bool {
	return b.Requests > 0 || b.Tokens > 0 || b.Spending > 0 || b.Duration > 0
}

// maxBudget is far below the largest number that a store counts to, in tokens and in millionths of the currency.
const maxBudget = 1 << 40

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (b Budget) Validate() error {
	var errs []error
	if b.Requests < 0 || b.Tokens < 0 || b.Duration < 0 || b.Requests > maxBudget || b.Tokens > maxBudget {
		errs = append(errs, errors.New("requests: must not be below 0 or beyond all measure, as must tokens and duration; 0 is no limit"))
	}
	if !(b.Spending >= 0 && b.Spending <= maxBudget/1e6) {
		errs = append(errs, errors.New("spending: must not be below 0 or beyond all measure; 0 is no limit"))
	}
	switch b.Per {
	case "", PerSession, PerCredential:
	default:
		errs = append(errs, errors.New("per: must be session or credential"))
	}
	return errors.Join(errs...)
}
