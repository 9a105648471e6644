package recovery

import "time"

// Budget limits what one session may use before it is stopped; zero means no limit. It stops runaway agents. It does
// not limit clients, which can begin a new session at any time.
type Budget struct {
	Requests int           `yaml:"requests"`
	Tokens   int           `yaml:"tokens"`   // prompts and answers of all attempts
	Spending float64       `yaml:"spending"` // in the currency of the prices
	Duration time.Duration `yaml:"duration"` // since its first request
	// Per selects what the budget applies to: each session, or all sessions of a credential together, for example
	// those of an agent and its sub-agents.
	Per BudgetScope `yaml:"per"`
}

// BudgetScope selects whose use counts against a budget.
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

// maxBudget limits a budget, in requests, tokens or millionths of the currency. It is far below the largest number
// that a store can count.
const maxBudget = 1 << 40

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (b Budget) Validate() error {
	var problems Problems
	problems.Check(b.Requests < 0 || b.Requests > maxBudget, "requests: must be between 0 and %d; 0 is no limit", maxBudget)
	problems.Check(b.Tokens < 0 || b.Tokens > maxBudget, "tokens: must be between 0 and %d; 0 is no limit", maxBudget)
	problems.Check(b.Duration < 0, "duration: must not be negative; 0 is no limit")
	problems.Check(!(b.Spending >= 0 && b.Spending <= maxBudget/1e6), "spending: must be between 0 and %.0f; 0 is no limit", maxBudget/1e6)
	switch b.Per {
	case "", PerSession, PerCredential:
	default:
		problems.Add("per: must be session or credential")
	}
	return problems.Err()
}
