package memory

import (
	"errors"
	"fmt"

	"github.com/rebound-llm/rebound/store"
)

// Config bounds the store.
type Config struct {
	MaxItems int   `yaml:"max_items"` // values, accounts, rings, boards and logs together
	MaxBytes int64 `yaml:"max_bytes"` // names, values and an estimate of the bookkeeping
}

// minBytes is room for a full board and some values of the largest size.
const minBytes = store.MaxFields*store.MaxField + 16*store.MaxValue

// Defaults returns the configuration that applies when none is given.
func Defaults() Config { return Config{MaxItems: 100_000, MaxBytes: 256 << 20} }

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	if c.MaxItems < 16 {
		errs = append(errs, errors.New("max_items: must be at least 16"))
	}
	if c.MaxBytes < minBytes {
		errs = append(errs, fmt.Errorf("max_bytes: must be at least %d", minBytes))
	}
	return errors.Join(errs...)
}
