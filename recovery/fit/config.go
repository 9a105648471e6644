package fit

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Config says when requests are fitted to a context window, and how far.
type Config struct {
	// Enabled turns fitting on. Without it the client gets context errors as they are.
	Enabled bool `yaml:"enabled"`
	// Summarize allows extra calls that summarise the oldest turns when cutting
	// long texts does not suffice.
	Summarize bool `yaml:"summarize"`
	// Summarizer is the model that writes summaries; the target itself if empty.
	Summarizer Summarizer `yaml:"summarizer"`
	// SummarizeResults has the summariser also condense single large results,
	// instead of keeping their most informative lines.
	SummarizeResults bool `yaml:"summarize_results"`
	// ThresholdChars and ThresholdArgs are lengths in characters, of old results and
	// of arguments of old calls. Both are cut to the same multiple of these.
	ThresholdChars int `yaml:"threshold_chars"`
	ThresholdArgs  int `yaml:"threshold_args"`
	// TargetShare is the share of the budget (window less output reserve) that a
	// request fills after fitting.
	TargetShare float64 `yaml:"target_share"`
	// TriggerShare is the share of the window above which a request whose count is known
	// (output reserve included) is fitted before it is sent.
	TriggerShare float64 `yaml:"trigger_share"`
	// KeepRecent is the share of the budget reserved for recent turns.
	KeepRecent float64 `yaml:"keep_recent"`
	// MaxRefits is how often a request is fitted again after its first fitting was refused.
	MaxRefits int `yaml:"max_refits"`
	// TTL is how long a session's edits are remembered after its last request.
	TTL time.Duration `yaml:"ttl"`
	// MinTokens is the size below which the store is not read while no limit of the
	// target is known.
	MinTokens int `yaml:"min_tokens"`
}

// Summarizer names an upstream and a model; both or none.
type Summarizer struct {
	Upstream string `yaml:"upstream"`
	Model    string `yaml:"model"`
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		Enabled: true, Summarize: true, ThresholdChars: 2000, ThresholdArgs: 1000,
		TargetShare: 0.50, TriggerShare: 0.95, KeepRecent: 0.15, MaxRefits: 1,
		TTL: 24 * time.Hour, MinTokens: 16_000,
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check((c.Summarizer.Upstream == "") != (c.Summarizer.Model == ""), "summarizer: needs both upstream and model, or neither")
	for _, n := range []struct {
		key   string
		value int
	}{{"threshold_chars", c.ThresholdChars}, {"threshold_args", c.ThresholdArgs}} {
		problems.Check(n.value < 200 || n.value > 10_000_000, "%s: must be between 200 and 10000000", n.key)
	}
	problems.Check(!(c.TriggerShare > 0 && c.TriggerShare <= 1), "trigger_share: must be above 0 and at most 1")
	problems.Check(!(c.TargetShare > 0 && c.TargetShare < c.TriggerShare), "target_share: must be above 0 and below trigger_share")
	problems.Check(!(c.KeepRecent >= 0 && c.KeepRecent < c.TargetShare), "keep_recent: must be at least 0 and below target_share")
	problems.Check(c.MaxRefits < 0 || c.MaxRefits > 5, "max_refits: must be between 0 and 5")
	problems.Check(c.TTL <= 0, "ttl: must be positive")
	problems.Check(c.MinTokens < 0, "min_tokens: must not be negative")
	return problems.Err()
}
