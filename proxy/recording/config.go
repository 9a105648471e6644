package recording

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Config configures the recording of requests.
type Config struct {
	// KeyEnv or KeyFile names the source of the encryption key; without a key nothing is recorded.
	KeyEnv  string `yaml:"key_env"`
	KeyFile string `yaml:"key_file"`
	Key     string `yaml:"-"`

	Body     int           `yaml:"body"`     // bytes of the largest recorded body
	Requests int           `yaml:"requests"` // recordings of one replica
	Total    int           `yaml:"total"`    // bytes of all recordings of one replica in the store
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
	// maxTotal leaves room for the other contents of the in-memory store.
	maxTotal = 128 << 20
)

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	problems.Check(c.KeyEnv != "" && c.KeyFile != "", "key_env: is given beside key_file: remove one of them")
	if c.Key != "" && len(c.Key) < minKey {
		problems.Add("key_env: the key must have at least %d characters; openssl rand -base64 32 makes one", minKey)
	} else if c.Key != "" && weak(c.Key) {
		problems.Add("key_env: the key is easy to guess: it repeats itself, or has few different characters; openssl rand -base64 32 makes one")
	}
	problems.Check(c.Body < 1<<10 || c.Body > maxBody, "body: must be from 1KiB to 16MiB")
	problems.Check(c.Requests < 1 || c.Requests > 100_000, "requests: must be from 1 to 100000")
	problems.Check(c.Total < 1<<20 || c.Total > maxTotal, "total: must be from 1MiB to 128MiB")
	problems.Check(c.TTL < time.Minute || c.TTL > 7*24*time.Hour, "ttl: must be from 1m to 168h")
	return problems.Err()
}

// weak reports whether a long key is easy to guess: it has few different characters, or repeats one
// short piece.
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
