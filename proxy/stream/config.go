package stream

import (
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Config tunes how streamed answers are watched and delivered.
type Config struct {
	// KeepAliveAfter is how long a streaming client waits without a byte before it gets status 200 and
	// a comment line; KeepAliveEvery is the interval of further ones. Zero turns them off. In formats
	// with pings an answer that has begun gets those instead, at most 10 s apart.
	KeepAliveAfter time.Duration `yaml:"keepalive_after"`
	KeepAliveEvery time.Duration `yaml:"keepalive_every"`
	// Idle is how long a stream may pause after its first content before a continuation or, while the
	// client has nothing, another attempt starts; IdlePinged applies if pings arrive meanwhile.
	Idle       time.Duration `yaml:"idle"`
	IdlePinged time.Duration `yaml:"idle_pinged"`
	// ReasoningAfter is how long reasoning is held back in formats whose clients store it by id, so
	// that the answer can still be restarted without the client noticing.
	ReasoningAfter time.Duration `yaml:"reasoning_after"`
	// MidStream selects what happens to a stream that breaks after text was sent: continue it, end it
	// with an error event, or buffer whole answers.
	MidStream MidStream `yaml:"mid_stream"`
	// Continue lists the methods of continuing, in order. Each is used if it suits the target and the
	// answer.
	Continue []recovery.Way `yaml:"continue"`
	// Repetition selects what happens to an answer that repeats itself endlessly after text was sent.
	// Before, it is always stopped.
	Repetition Repetition `yaml:"repetition"`
	// MaxEvent limits one SSE event, MaxAnswer a buffered answer, in bytes.
	MaxEvent  int64 `yaml:"max_event"`
	MaxAnswer int64 `yaml:"max_answer"`
}

// MidStream is a policy for streams that break after text was sent.
type MidStream string

// The policies.
const (
	MidStreamContinue MidStream = "continue"
	MidStreamError    MidStream = "error"
	MidStreamBuffer   MidStream = "buffer"
)

// Repetition is a policy for answers that repeat themselves endlessly.
type Repetition string

// The policies.
const (
	RepetitionObserve Repetition = "observe" // the answer goes on; Answer.Runaway reports it
	RepetitionStop    Repetition = "stop"    // the answer is treated as broken
)

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		KeepAliveAfter: 15 * time.Second, KeepAliveEvery: 15 * time.Second,
		Idle: 20 * time.Second, IdlePinged: 120 * time.Second, ReasoningAfter: 5 * time.Second,
		MidStream: MidStreamContinue, Continue: recovery.Ways(), Repetition: RepetitionObserve, MaxEvent: 16 << 20, MaxAnswer: 64 << 20,
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check(!slices.Contains([]MidStream{MidStreamContinue, MidStreamError, MidStreamBuffer}, c.MidStream), "mid_stream: %q is none of continue, error, buffer", c.MidStream)
	for i, way := range c.Continue {
		problems.Check(!slices.Contains(recovery.Ways(), way), "continue[%d]: %q is none of prefill, replay, ask", i, way)
	}
	problems.Check(c.Repetition != RepetitionObserve && c.Repetition != RepetitionStop, "repetition: %q is none of observe, stop", c.Repetition)
	problems.Check(c.KeepAliveAfter < 0, "keepalive_after: must not be negative; 0 is never")
	problems.Check(c.KeepAliveAfter > 0 && c.KeepAliveEvery <= 0, "keepalive_every: must be positive")
	problems.Check(c.Idle <= 0 || c.IdlePinged < c.Idle, "idle: must be positive and at most idle_pinged")
	problems.Check(c.ReasoningAfter < 0, "reasoning_after: must not be negative")
	problems.Check(c.MaxEvent < 1<<10, "max_event: must be at least 1KiB")
	problems.Check(c.MaxAnswer < 1<<10, "max_answer: must be at least 1KiB")
	return problems.Err()
}
