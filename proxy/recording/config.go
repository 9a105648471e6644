package recording

import (
	"errors"
	"fmt"
	"time"
)

// Config says whether requests are recorded, and how many.
type Config struct {
	// KeyEnv or KeyFile names what recordings are encrypted with; without it nothing is recorded.
	KeyEnv  string `yaml:"key_env"`
	KeyFile string `yaml:"key_file"`
	Key     string `yaml:"-"`

	Body     int           `yaml:"body"`     // bytes of the largest body that is kept
	Requests int           `yaml:"requests"` // that one replica keeps
	Total    int           `yaml:"total"`    // bytes that they take in the store
	TTL      time.Duration `yaml:"ttl"`
}

// Defaults returns the configuration that applies when none is given: nothing is recorded.
func Defaults() Config {
	return Config{Body: 1 << 20, Requests: 1000, Total: 64 << 20, TTL: time.Hour}
}

// Enabled reports whether requests are recorded.
func (c Config) Enabled() bool { return c.Key != "" }

const (
	minKey  = 32
	maxBody = 16 << 20
	// maxTotal leaves room for what else the store keeps in this process.
	maxTotal = 128 << 20
)

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	if c.KeyEnv != "" && c.KeyFile != "" {
		errs = append(errs, errors.New("key_env: is given beside key_file: remove one of them"))
	}
	if c.Key != "" && len(c.Key) < minKey {
		errs = append(errs, fmt.Errorf("key_env: the key must have at least %d characters; openssl rand -base64 32 makes one", minKey))
	} else if c.Key != "" && weak(c.Key) {
		errs = append(errs, errors.New("key_env: the key is easy to guess: it repeats itself, or has few different characters; openssl rand -base64 32 makes one"))
	}
	if c.Body < 1<<10 || c.Body > maxBody {
		errs = append(errs, errors.New("body: must be from 1KiB to 16MiB"))
	}
	if c.Requests < 1 || c.Requests > 100_000 {
		errs = append(errs, errors.New("requests: must be from 1 to 100000"))
	}
	if c.Total < 1<<20 || c.Total > maxTotal {
		errs = append(errs, errors.New("total: must be from 1MiB to 128MiB"))
	}
	if c.TTL < time.Minute || c.TTL > 7*24*time.Hour {
		errs = append(errs, errors.New("ttl: must be from 1m to 168h"))
	}
	return errors.Join(errs...)
}

// weak reports whether a key is long and yet easy to guess: of fewer characters than any
// random one of its length has, or one piece over and over.
func weak(key string) bool {
	const fewest, shortest = 8, 16
	different := map[rune]bool{}
	for _, r := range key {
		different[r] = true
	}
	if len(different) < fewest {
		return true
	}
	for n := 1; n < shortest; n++ {
		if key[n:] == key[:len(key)-n] {
			return true
		}
	}
	return false
}
