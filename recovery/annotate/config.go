package annotate

import (
	"slices"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Config selects which notes are written and changes the chains.
type Config struct {
	// Confidence is the minimum confidence of a failure, 0 to 1, for a note about it.
	Confidence float64 `yaml:"confidence"`
	// Holdout is the share of sessions, 0 to 1, that get no notes, so that the effect of notes can be measured.
	Holdout float64 `yaml:"holdout"`
	// Risky permits strategies that install, delete or change permissions.
	Risky bool `yaml:"risky"`
	// Forbid names strategies that are never proposed.
	Forbid []string `yaml:"forbid"`
	// Remember applies what users forbid also to later sessions of the same credential, for 30 days.
	Remember bool `yaml:"remember"`
	// Chains changes chains, by category; see [Chains.With].
	Chains map[string][]Strategy `yaml:"chains"`
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config { return Config{Confidence: 0.9, Holdout: 0.02} }

// Validate reports every problem as one joined error; each message begins with the key. [Chains.With] validates
// Chains.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check(!(c.Confidence >= 0 && c.Confidence <= 1), "confidence: must be between 0 and 1")
	problems.Check(!(c.Holdout >= 0 && c.Holdout <= 1), "holdout: must be between 0 and 1")
	if i := slices.Index(c.Forbid, AskUser); i >= 0 {
		problems.Add("forbid[%d]: %s cannot be forbidden: every chain ends with it", i, AskUser)
	}
	return problems.Err()
}

// short limits the length of a value that an error message quotes.
func short(s string) string { return trajectory.Shorten(s, 40) }
