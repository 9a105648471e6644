package fit

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for key, change := range map[string]func(*Config){
		"summarizer":      func(c *Config) { c.Summarizer.Model = "m" },
		"threshold_chars": func(c *Config) { c.ThresholdChars = 10 },
		"threshold_args":  func(c *Config) { c.ThresholdArgs = -1 },
		"trigger_share":   func(c *Config) { c.TriggerShare = 1.2 },
		"target_share":    func(c *Config) { c.TargetShare = 0.95 },
		"keep_recent":     func(c *Config) { c.KeepRecent = 0.6 },
		"max_refits":      func(c *Config) { c.MaxRefits = 9 },
		"ttl":             func(c *Config) { c.TTL = 0 },
		"min_tokens":      func(c *Config) { c.MinTokens = -1 },
	} {
		c := Defaults()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+":") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
