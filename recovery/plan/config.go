package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Mode says what becomes of plans.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // they are made and told of, and nothing else
	ModeAct     Mode = "act"     // they are carried out
)

// Same is the Upstream that means the request's own target.
const Same = "same"

// Config says who plans, and what plans may do.
type Config struct {
	// Upstream is where the planner is; Same asks the request's own target, empty asks nobody.
	Upstream string `yaml:"upstream"`
	// Model is the planner; empty is the request's, with Same only.
	Model string `yaml:"model"`
	Mode  Mode   `yaml:"mode"`
	// Force has the model call the tool of a plan that is carried out (tool_choice), where
	// rules and planner agree that the call only reads, and all its arguments stand in a
	// person's words or in the agent's own earlier calls.
	Force bool `yaml:"force"`
	// Wait is how long a request waits for a plan, from the third time on.
	Wait time.Duration `yaml:"wait"`
	// Timeout bounds one call of the planner.
	Timeout time.Duration `yaml:"timeout"`
	// Concurrent bounds the calls of the planner at once, of this process.
	Concurrent int `yaml:"concurrent"`
	Limits     `yaml:",inline"`
	// Approvals has plans between Propose and Act wait for a person; a Webhook does, too.
	Approvals bool `yaml:"approvals"`
	// ApprovalTime is how long they wait.
	ApprovalTime time.Duration `yaml:"approval_time"`
	Webhook      Webhook       `yaml:"webhook"`
	// Keys changes what plans may do for gateway keys, by name.
	Keys map[string]Limits `yaml:"keys"`
}

// Limits are what plans may do. What is zero for a gateway key is as for all.
type Limits struct {
	// Act is the confidence from which a plan is carried out, and Propose the one
	// from which it is proposed; below, the user is asked.
	Act     float64 `yaml:"act"`
	Propose float64 `yaml:"propose"`
	// Strategies and Tools (patterns as in path.Match) are those that a plan may use; empty: all.
	Strategies []recovery.PlanStrategy `yaml:"strategies"`
	Tools      []string                `yaml:"tools"`
}

// Webhook is told of plans that wait for approval.
type Webhook struct {
	URL        string `yaml:"url"`
	SecretEnv  string `yaml:"secret_env"`
	SecretFile string `yaml:"secret_file"`
	Secret     string `yaml:"-"` // signs what is sent
}

// Defaults returns the configuration that applies when none is given: the request's own target plans.
func Defaults() Config {
	return Config{Upstream: Same, Mode: ModeAct, Wait: 2 * time.Second, Timeout: 30 * time.Second, Concurrent: 8,
		Limits: Limits{Act: 0.8, Propose: 0.5}, ApprovalTime: 10 * time.Minute}
}

// approved reports whether there is somebody to approve plans.
func (c Config) approved() bool { return c.Approvals || c.Webhook.URL != "" }

// Enabled reports whether there is a planner.
func (c Config) Enabled() bool { return c.Upstream != "" }

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Mode != ModeObserve && c.Mode != ModeAct {
		add("mode: %q is none of observe, act", string(c.Mode))
	}
	if c.Model == "" && c.Upstream != "" && c.Upstream != Same {
		add("model: is needed, unless upstream is same")
	}
	if c.Wait < 0 || c.Wait > 30*time.Second {
		add("wait: must be between 0s and 30s")
	}
	if c.Timeout <= 0 || c.Timeout > time.Minute {
		add("timeout: must be above 0s and at most 1m")
	}
	if c.Concurrent < 1 || c.Concurrent > 1024 {
		add("concurrent: must be between 1 and 1024")
	}
	if c.ApprovalTime < time.Second || c.ApprovalTime > time.Hour {
		add("approval_time: must be between 1s and 1h")
	}
	errs = append(errs, c.Limits.check("", 1e-9)...)
	for _, name := range slices.Sorted(maps.Keys(c.Keys)) {
		errs = append(errs, c.limits(name).check("keys: "+name+": ", 0)...)
	}
	if (c.Webhook.SecretEnv != "" || c.Webhook.SecretFile != "") && c.Webhook.URL == "" {
		add("webhook.url: is needed with a secret")
	}
	if c.Webhook.URL != "" && (c.Webhook.SecretEnv == "") == (c.Webhook.SecretFile == "") {
		add("webhook.secret_env: or webhook.secret_file is needed: what is sent is signed")
	}
	return errors.Join(errs...)
}

// check reports what is wrong with limits that are complete.
func (l Limits) check(key string, least float64) (errs []error) {
	if !(l.Propose >= least && l.Propose <= l.Act && l.Act <= 1) {
		errs = append(errs, fmt.Errorf("%sact: must be at most 1 and no less than propose, which must be above 0", key))
	}
	for i, s := range l.Strategies {
		if !slices.Contains(recovery.PlanStrategies(), s) {
			errs = append(errs, fmt.Errorf("%sstrategies[%d]: %q is none of %v", key, i, short(string(s)), recovery.PlanStrategies()))
		}
	}
	for i, p := range l.Tools {
		if _, err := path.Match(p, "x"); err != nil || p == "" {
			errs = append(errs, fmt.Errorf("%stools[%d]: %q is not a pattern", key, i, short(p)))
		}
	}
	return errs
}

// limits are those of a gateway key.
func (c Config) limits(key string) Limits {
	own, out := c.Keys[key], c.Limits
	out.Act, out.Propose = cmp.Or(own.Act, out.Act), cmp.Or(own.Propose, out.Propose)
	if len(own.Strategies) > 0 {
		out.Strategies = own.Strategies
	}
	if len(own.Tools) > 0 {
		out.Tools = own.Tools
	}
	return out
}

// band is what a confidence allows.
func (l Limits) band(confidence float64) recovery.PlanBand {
	switch {
	case confidence >= l.Act:
		return recovery.BandAct
	case confidence >= l.Propose:
		return recovery.BandPropose
	}
	return recovery.BandEscalate
}

// permits reports whether a plan keeps to the limits.
func (l Limits) permits(p *recovery.Plan) bool {
	if len(l.Strategies) > 0 && !slices.Contains(l.Strategies, p.Strategy) {
		return false
	}
	return p.Tool == "" || len(l.Tools) == 0 || slices.ContainsFunc(l.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, p.Tool)
		return ok && err == nil
	})
}
