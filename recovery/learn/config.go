package learn

import (
	"path"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Config tunes what is learned about targets and notes, and the first-token limit.
type Config struct {
	// FactTTL is how long a refused parameter or an output limit is remembered. After that the client's parameter is sent
	// again.
	FactTTL time.Duration `yaml:"fact_ttl"`
	// Outcomes selects learning which notes help: off, observe (outcomes are stored but not used) or act (they decide
	// about notes).
	Outcomes   string           `yaml:"outcomes"`
	FirstToken FirstTokenConfig `yaml:"first_token"`
}

// FirstTokenConfig limits how long an attempt may be silent before another one starts beside it. An attempt is abandoned only
// after a longer time, and only with evidence that it is lost: see [recovery.Limits].
type FirstTokenConfig struct {
	Min       time.Duration `yaml:"min"`        // lower bound if there is another target
	Whole     time.Duration `yaml:"whole"`      // lower bound for answers that are not streamed, because such an answer comes as a whole
	PerTokens int           `yaml:"per_tokens"` // plus one second for each PerTokens estimated input tokens
	SameAfter time.Duration `yaml:"same_after"` // lower bound if there is no other target
	Factor    float64       `yaml:"factor"`     // multiplied by the target's p95 for the input size
	Reasoning time.Duration `yaml:"reasoning"`  // lower bound for reasoning models
	// ReasoningModels are name patterns (as in path.Match, case-insensitive) of models that reason without output; others
	// are recognised by the request and by their answers.
	ReasoningModels []string `yaml:"reasoning_models"`
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		FactTTL: 6 * time.Hour, Outcomes: OutcomesAct,
		FirstToken: FirstTokenConfig{
			Min: 10 * time.Second, Whole: time.Minute, PerTokens: 5000, SameAfter: 30 * time.Second, Factor: 3, Reasoning: 180 * time.Second,
			ReasoningModels: []string{"o[1-9]*", "gpt-5*", "*reason*", "*think*", "*-r1*", "qwq*", "magistral*"},
		},
	}
}

// Validate reports every problem as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check(c.FactTTL <= 0, "fact_ttl: must be positive")
	problems.Check(c.Outcomes != OutcomesOff && c.Outcomes != OutcomesObserve && c.Outcomes != OutcomesAct, "outcomes: must be off, observe or act")
	f := c.FirstToken
	for _, limit := range [...]struct {
		key   string
		value time.Duration
	}{{"min", f.Min}, {"whole", f.Whole}, {"same_after", f.SameAfter}, {"reasoning", f.Reasoning}} {
		problems.Check(limit.value <= 0, "first_token.%s: must be positive", limit.key)
	}
	problems.Check(f.PerTokens < 1, "first_token.per_tokens: must be at least 1")
	problems.Check(f.Factor < 1, "first_token.factor: must be at least 1")
	for i, p := range f.ReasoningModels {
		if _, err := path.Match(p, "x"); err != nil {
			problems.Add("first_token.reasoning_models[%d]: %q is not a pattern", i, p)
		}
	}
	return problems.Err()
}
