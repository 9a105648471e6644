package recovery

import "time"

// Mode limits what the gateway may do to a request.
type Mode string

// The modes, from most to least.
const (
	ModeAct      Mode = "act"      // recover, and guide the model
	ModeAnnotate Mode = "annotate" // guide the model only: no recovery beyond one attempt
	ModeObserve  Mode = "observe"  // record what would have been done
	ModeOff      Mode = "off"      // a plain proxy
)

// ParseMode reads a mode; ok is false for anything else.
func ParseMode(s string) (m Mode, ok bool) {
	switch m := Mode(s); m {
	case ModeAct, ModeAnnotate, ModeObserve, ModeOff:
		return m, true
	}
	return "", false
}

// Graceful selects what a client gets for a request that cannot be recovered.
type Graceful string

// The ways to fail.
const (
	GracefulExplain Graceful = "explain" // the model is asked to explain the refusal to the user
	GracefulError   Graceful = "error"   // the upstream's error
)

// Media selects what happens to images and other attachments that a target refuses.
type Media string

// The ways to treat attachments.
const (
	MediaKeep Media = "keep" // the client gets the refusal
	MediaDrop Media = "drop" // a short text replaces them
)

// Config limits what the engine spends on one request.
type Config struct {
	Mode Mode `yaml:"mode"`
	// Deadline limits the time to the first byte for the client. A client's
	// x-stainless-timeout replaces it for that request.
	Deadline time.Duration `yaml:"deadline"`
	// Attempts limits the attempts of one request that may cost something: the first, retries, fallbacks,
	// re-asks. 1 turns recovery off.
	Attempts int `yaml:"attempts"`
	// Patience is how long a request without another target keeps trying after failures that cost nothing
	// (refused, no route, 429, 502, 503, 529, a 500 within 2 s), at most half of the client's own timeout. Waits
	// that an upstream asks for do not count. With 0 these failures count towards Attempts.
	Patience time.Duration `yaml:"patience"`
	// BackoffMin and BackoffMax limit the random waits before blind resends, see [Situation.Backoff].
	BackoffMin time.Duration `yaml:"backoff_min"`
	BackoffMax time.Duration `yaml:"backoff_max"`
	// RateLimitWait is the first wait after a rate limit without a hint; it doubles up
	// to BackoffMax.
	RateLimitWait time.Duration `yaml:"rate_limit_wait"`
	// WaitSame limits the wait for the same target while another target exists.
	WaitSame time.Duration `yaml:"wait_same"`
	// WaitMax limits the wait when no other target is left.
	WaitMax time.Duration `yaml:"wait_max"`
	// ExtraInput limits the extra billable input of one request, as a multiple of its own input: parallel starts,
	// continuations and re-asks count 1 each, summaries by what they read. For a cut stream the limit is doubled.
	ExtraInput int `yaml:"extra_input"`
	// Reasks limits how often a model is asked again after an answer that cannot be repaired, within
	// ExtraInput.
	Reasks int `yaml:"reasks"`
	// Continue lists the ways to continue an answer that breaks after text was delivered, in order.
	Continue []Way `yaml:"-"`
	// Graceful selects what the client gets if an upstream refuses a request within a conversation and no strategy
	// recovers it.
	Graceful Graceful `yaml:"graceful"`
	// Media selects what happens to attachments that a target refuses.
	Media Media `yaml:"media"`
	// Parallel limits parallel starts.
	Parallel ParallelConfig `yaml:"parallel"`
}

// CutInput returns ExtraInput for a request whose stream was cut: the client has the beginning of an answer, and each
// continuation begins where the last one stopped.
func (c *Config) CutInput() int { return 2 * c.ExtraInput }

// maxExtraInput is the largest ExtraInput.
const maxExtraInput = 10

// ParallelConfig limits parallel starts.
type ParallelConfig struct {
	Enabled   bool    `yaml:"enabled"`
	MaxTokens int     `yaml:"max_tokens"` // no parallel start above this many estimated input tokens
	MaxShare  float64 `yaml:"max_share"`  // of all requests, over a sliding window
	Burst     int     `yaml:"burst"`      // parallel starts allowed before the share applies
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		Mode: ModeAct, Deadline: 10 * time.Minute, Attempts: 6, Patience: 30 * time.Second,
		BackoffMin: 500 * time.Millisecond, BackoffMax: 8 * time.Second,
		RateLimitWait: time.Second, WaitSame: 5 * time.Second, WaitMax: time.Minute, ExtraInput: 2, Continue: Ways(), Reasks: 2, Graceful: GracefulExplain, Media: MediaKeep,
		Parallel: ParallelConfig{Enabled: true, MaxTokens: 100_000, MaxShare: 0.05, Burst: 10},
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems Problems
	if _, ok := ParseMode(string(c.Mode)); !ok {
		problems.Add("mode: %q is none of act, annotate, observe, off", c.Mode)
	}
	problems.Check(c.Attempts < 1 || c.Attempts > 100, "attempts: must be between 1 and 100")
	problems.Check(c.Deadline <= 0, "deadline: must be positive")
	problems.Check(c.Patience < 0, "patience: must not be negative")
	problems.Check(c.BackoffMin <= 0 || c.BackoffMax < c.BackoffMin, "backoff_min: must be positive and at most backoff_max")
	problems.Check(c.RateLimitWait <= 0, "rate_limit_wait: must be positive")
	problems.Check(c.WaitSame < 0, "wait_same: must not be negative")
	problems.Check(c.WaitMax < 0, "wait_max: must not be negative")
	problems.Check(c.ExtraInput < 0 || c.ExtraInput > maxExtraInput, "extra_input: must be between 0 and %d", maxExtraInput)
	problems.Check(c.Reasks < 0 || c.Reasks > 10, "reasks: must be between 0 and 10")
	problems.Check(c.Graceful != GracefulExplain && c.Graceful != GracefulError, "graceful: %q is none of explain, error", c.Graceful)
	problems.Check(c.Media != MediaKeep && c.Media != MediaDrop, "media: %q is none of keep, drop", c.Media)
	problems.Check(c.Parallel.MaxShare < 0 || c.Parallel.MaxShare > 1, "parallel.max_share: must be between 0 and 1")
	problems.Check(c.Parallel.MaxTokens < 0, "parallel.max_tokens: must not be negative")
	problems.Check(c.Parallel.Burst < 0, "parallel.burst: must not be negative")
	return problems.Err()
}
