package telemetry

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Config configures logging.
type Config struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // json or text
	// Requests logs one line for every request; without it only eventful requests are logged.
	Requests bool `yaml:"requests"`
	// Slow is the duration from which an otherwise uneventful request is logged; 0: never.
	Slow time.Duration `yaml:"slow"`
	// Queue limits the events that wait to be written; further ones are dropped and counted.
	Queue int `yaml:"queue"`
}

// maxQueue limits Config.Queue: the slots are allocated at the start, and this many waiting events take about a gigabyte.
const maxQueue = 1_000_000

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{Level: "info", Format: "json", Slow: 30 * time.Second, Queue: 4096}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	switch c.Level {
	case "debug", "info", "warn", "error":
	default:
		problems.Add("level: %q is none of debug, info, warn, error", c.Level)
	}
	problems.Check(c.Format != "json" && c.Format != "text", "format: %q is neither json nor text", c.Format)
	problems.Check(c.Slow < 0, "slow: must not be negative; 0 is never")
	problems.Check(c.Queue < 1 || c.Queue > maxQueue, "queue: must be between 1 and %d", maxQueue)
	return problems.Err()
}
