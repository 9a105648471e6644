package learn

import (
	"errors"
	"fmt"
	"path"
	"time"
)

// Config tunes what is remembered of targets and of notes, and the first-token limit.
type Config struct {
	// FactTTL is how long a refused parameter or an output limit is remembered;
	// then it is tried again as the client sent it.
	FactTTL time.Duration `yaml:"fact_ttl"`
	// Outcomes says whether it is learned which notes help: off, observe (kept, and
	// nothing follows) or act (it decides about notes).
	Outcomes   string           `yaml:"outcomes"`
	FirstToken FirstTokenConfig `yaml:"first_token"`
}

// FirstTokenConfig sets when a silent attempt gets an alternative. It never cuts one.
type FirstTokenConfig struct {
	Min       time.Duration `yaml:"min"`        // lower bound with another target
	Whole     time.Duration `yaml:"whole"`      // lower bound for answers that are not streamed: all of one comes at once
	PerTokens int           `yaml:"per_tokens"` // plus one second for every so many estimated input tokens
	SameAfter time.Duration `yaml:"same_after"` // lower bound with no other target
	Factor    float64       `yaml:"factor"`     // times the target's p95 for that input size
	Reasoning time.Duration `yaml:"reasoning"`  // lower bound for models that reason
	// ReasoningModels are name patterns (as in path.Match, case-insensitive) of
	// models that reason in silence; others are recognised by the request and
	// by their answers.
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

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	if c.FactTTL <= 0 {
		errs = append(errs, errors.New("fact_ttl: must be positive"))
	}
	if c.Outcomes != OutcomesOff && c.Outcomes != OutcomesObserve && c.Outcomes != OutcomesAct {
		errs = append(errs, errors.New("outcomes: must be off, observe or act"))
	}
	f := c.FirstToken
	if f.Min <= 0 || f.Whole <= 0 || f.SameAfter <= 0 || f.Reasoning <= 0 {
		errs = append(errs, errors.New("first_token.min: limits must be positive"))
	}
	if f.PerTokens < 1 {
		errs = append(errs, errors.New("first_token.per_tokens: must be at least 1"))
	}
	if f.Factor < 1 {
		errs = append(errs, errors.New("first_token.factor: must be at least 1"))
	}
	for i, p := range f.ReasoningModels {
		if _, err := path.Match(p, "x"); err != nil {
			errs = append(errs, fmt.Errorf("first_token.reasoning_models[%d]: %q is not a pattern", i, p))
		}
	}
	return errors.Join(errs...)
}
