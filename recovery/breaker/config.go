package breaker

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Config tunes the targets' breakers, cool-downs and resend budget.
type Config struct {
	Window       time.Duration `yaml:"window"`        // sliding window in which attempts are counted
	MinRequests  int           `yaml:"min_requests"`  // minimum number of attempts in the window before a breaker opens
	FailureShare float64       `yaml:"failure_share"` // share of failures at which a breaker opens
	Open         time.Duration `yaml:"open"`          // first open period; doubles while probes fail
	OpenMax      time.Duration `yaml:"open_max"`      // longest open period
	Successes    int           `yaml:"successes"`     // probes that must succeed to close
	Cooldown     time.Duration `yaml:"cooldown"`      // after a rate limit without a hint
	CooldownMax  time.Duration `yaml:"cooldown_max"`  // longest cool-down, whatever the upstream states
	ResendShare  float64       `yaml:"resend_share"`  // maximum share of blind resends among the target's requests in flight
	ResendMin    int           `yaml:"resend_min"`    // number of resends at a time that are always allowed
	Clients      int           `yaml:"-"`             // number of configured gateway keys; with 0, clients are known by their requests

	// For sessions: the number of identical tool failures in a row that opens the breaker (0: never), what the client gets
	// then, and how long a session's failures are remembered.
	Failures   int           `yaml:"failures"`
	OnOpen     OnOpen        `yaml:"on_open"`
	SessionTTL time.Duration `yaml:"session_ttl"`
	// An agent that waits without any new result gets a note after WaitingHint, and its session is stopped after Waiting.
	// 0: never.
	WaitingHint time.Duration `yaml:"waiting_hint"`
	Waiting     time.Duration `yaml:"waiting"`
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		Window: 10 * time.Second, MinRequests: 5, FailureShare: 0.5,
		Open: 5 * time.Second, OpenMax: 15 * time.Second, Successes: 2,
		Cooldown: time.Second, CooldownMax: time.Hour,
		ResendShare: 0.2, ResendMin: 3,
		Failures: 5, OnOpen: OnOpenExplain, SessionTTL: 24 * time.Hour,
		WaitingHint: 10 * time.Minute, Waiting: 2 * time.Hour,
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check(c.Window <= 0, "window: must be positive")
	problems.Check(c.MinRequests < 1, "min_requests: must be at least 1")
	problems.Check(c.FailureShare <= 0 || c.FailureShare > 1, "failure_share: must be above 0 and at most 1")
	problems.Check(c.Open <= 0 || c.OpenMax < c.Open, "open: must be positive and at most open_max")
	problems.Check(c.Successes < 1, "successes: must be at least 1")
	problems.Check(c.Cooldown <= 0 || c.CooldownMax < c.Cooldown, "cooldown: must be positive and at most cooldown_max")
	problems.Check(c.ResendShare < 0 || c.ResendShare > 1, "resend_share: must be between 0 and 1")
	problems.Check(c.ResendMin < 0, "resend_min: must not be negative")
	problems.Check(c.Failures < 0 || c.Failures > store.MaxRing, "failures: must be between 0 and %d", store.MaxRing)
	switch c.OnOpen {
	case OnOpenExplain, OnOpenError, OnOpenSteer:
	default:
		problems.Add("on_open: %q is none of explain, error, steer", c.OnOpen)
	}
	problems.Check(c.SessionTTL < time.Minute, "session_ttl: must be at least 1m")
	problems.Check(c.Waiting < 0, "waiting: must not be negative")
	problems.Check(c.WaitingHint < 0 || c.Waiting > 0 && (c.WaitingHint == 0 || c.WaitingHint >= c.Waiting),
		"waiting_hint: must be positive and less than waiting, because a session gets a hint before it is stopped")
	problems.Check(c.Waiting >= c.SessionTTL, "waiting: must be less than session_ttl")
	return problems.Err()
}
