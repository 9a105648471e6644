package recovery_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Each setting at its bounds is taken, and just beyond them named.
func TestConfigBounds(t *testing.T) {
	for _, c := range []struct {
		key  string // that the error names; empty where there is none
		also string // another one
		set  func(*recovery.Config)
	}{
		{"", "", func(*recovery.Config) {}},
		{"mode", "", func(c *recovery.Config) { c.Mode = "help" }},
		{"mode", "graceful", func(c *recovery.Config) { c.Mode, c.Graceful = "", "" }},
		{"attempts", "", func(c *recovery.Config) { c.Attempts = 0 }},
		{"", "", func(c *recovery.Config) { c.Attempts = 1 }},
		{"", "", func(c *recovery.Config) { c.Attempts = 100 }},
		{"attempts", "", func(c *recovery.Config) { c.Attempts = 101 }},
		{"deadline", "", func(c *recovery.Config) { c.Deadline = 0 }},
		{"", "", func(c *recovery.Config) { c.Deadline = 1 }},
		{"backoff_min", "", func(c *recovery.Config) { c.BackoffMin = 0 }},
		{"", "", func(c *recovery.Config) { c.BackoffMin, c.BackoffMax = 1, 1 }},
		{"backoff_min", "", func(c *recovery.Config) { c.BackoffMin, c.BackoffMax = 2, 1 }},
		{"rate_limit_wait", "", func(c *recovery.Config) { c.RateLimitWait = 0 }},
		{"", "", func(c *recovery.Config) { c.RateLimitWait, c.WaitSame, c.WaitMax = 1, 0, 0 }},
		{"wait_same", "", func(c *recovery.Config) { c.WaitSame = -1 }},
		{"wait_max", "", func(c *recovery.Config) { c.WaitMax = -1 }},
		{"", "", func(c *recovery.Config) { c.ExtraInput, c.Reasks = 0, 0 }},
		{"", "", func(c *recovery.Config) { c.ExtraInput, c.Reasks = 10, 10 }},
		{"extra_input", "", func(c *recovery.Config) { c.ExtraInput = -1 }},
		{"extra_input", "", func(c *recovery.Config) { c.ExtraInput = 11 }},
		{"reasks", "", func(c *recovery.Config) { c.Reasks = -1 }},
		{"reasks", "", func(c *recovery.Config) { c.Reasks = 11 }},
		{"", "", func(c *recovery.Config) { c.Graceful, c.Media = recovery.GracefulError, recovery.MediaDrop }},
		{"graceful", "", func(c *recovery.Config) { c.Graceful = "yes" }},
		{"media", "", func(c *recovery.Config) { c.Media = "yes" }},
		{"", "", func(c *recovery.Config) { c.Parallel = recovery.ParallelConfig{} }},
		{"", "", func(c *recovery.Config) { c.Parallel.MaxShare = 1 }},
		{"parallel.max_share", "", func(c *recovery.Config) { c.Parallel.MaxShare = 1.5 }},
		{"parallel.max_share", "parallel.burst", func(c *recovery.Config) { c.Parallel.MaxShare, c.Parallel.Burst = -0.5, -1 }},
		{"parallel.max_tokens", "", func(c *recovery.Config) { c.Parallel.MaxTokens = -1 }},
	} {
		cfg := recovery.Defaults()
		c.set(&cfg)
		var got []string
		if err := cfg.Validate(); err != nil {
			for line := range strings.Lines(err.Error()) {
				key, _, _ := strings.Cut(line, ":")
				got = append(got, key)
			}
		}
		if want := strings.Fields(c.key + " " + c.also); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("wrong are %v, want %v: %+v", got, want, cfg)
		}
	}
	for _, m := range []recovery.Mode{recovery.ModeAct, recovery.ModeAnnotate, recovery.ModeObserve, recovery.ModeOff} {
		if got, ok := recovery.ParseMode(string(m)); got != m || !ok {
			t.Errorf("%s is read as %s", m, got)
		}
	}
	if got, ok := recovery.ParseMode("Act"); got != "" || ok {
		t.Errorf("Act is read as %s", got)
	}
}

// Waits before resends double up to their bound, and are random in the upper quarter.
func TestBackoff(t *testing.T) {
	cfg := recovery.Defaults()
	for n, most := range []time.Duration{500, 1000, 2000, 4000, 8000, 8000, 8000} {
		for _, jitter := range []float64{0, 0.5, 1} {
			s := recovery.Situation{Config: &cfg, Jitter: func() float64 { return jitter }}
			if got, want := s.Backoff(n), time.Duration((3+jitter)/4*float64(most*time.Millisecond)); got != want {
				t.Errorf("the wait %d with jitter %v is %v, want %v", n, jitter, got, want)
			}
		}
	}
	cfg.BackoffMin, cfg.BackoffMax = 3*time.Second, 3500*time.Millisecond
	s := recovery.Situation{Config: &cfg, Jitter: func() float64 { return 1 }}
	if got := s.Backoff(1); got != 3500*time.Millisecond {
		t.Errorf("a wait beyond the bound: %v", got)
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"u/m":   recovery.Target{Upstream: "u", Model: "m"}.String(),
		"u/m#k": recovery.Target{Upstream: "u", Model: "m", Key: "k"}.String(),
		"server_error from u/m: EOF": (&recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(recovery.ServerError)},
			Target: recovery.Target{Upstream: "u", Model: "m"}, Err: io.EOF}).Error(),
		"unknown from u/m (status 418)": (&recovery.Failure{Diagnosis: recovery.Diagnosis{Signal: recovery.Signal{Status: 418}},
			Target: recovery.Target{Upstream: "u", Model: "m"}}).Error(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if f := (&recovery.Failure{Err: io.EOF}); f.Unwrap() != io.EOF || f.Scope() != recovery.ScopeClient {
		t.Errorf("%v, %v", f.Unwrap(), f.Scope())
	}
	if n := len(recovery.Categories()); n != 10 {
		t.Errorf("%d categories", n)
	}
}
