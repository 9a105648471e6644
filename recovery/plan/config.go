package plan

import (
	"path"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Mode selects whether plans are applied.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // plans are made and reported as events only
	ModeAct     Mode = "act"     // plans are applied
)

// Same is the value of Upstream for the request's own target.
const Same = "same"

// Config selects the planner and limits what plans may do.
type Config struct {
	// Upstream is the planner's upstream: Same is the request's own target, empty disables planning.
	Upstream string `yaml:"upstream"`
	// Model is the planner's model; with Same, empty means the request's model.
	Model string `yaml:"model"`
	Mode  Mode   `yaml:"mode"`
	// Force sets tool_choice to the tool of a plan in the Act band, if the gateway's rules and the planner agree that the
	// call only reads and if all argument values appear in the user's words or in the agent's own earlier calls.
	Force bool `yaml:"force"`
	// Wait limits how long a request waits for a plan, from the third occurrence of a failure on.
	Wait time.Duration `yaml:"wait"`
	// Timeout limits one call to the planner.
	Timeout time.Duration `yaml:"timeout"`
	// Concurrent limits the calls to planners that this process makes at once.
	Concurrent int `yaml:"concurrent"`
	// Act is the minimum confidence for a plan that the model is told to carry out, Propose the minimum for a proposal;
	// below both, the model is told to ask the user.
	Act     float64 `yaml:"act"`
	Propose float64 `yaml:"propose"`
	// Strategies and Tools (patterns as in path.Match) list what a plan may use; empty means all.
	Strategies []recovery.PlanStrategy `yaml:"strategies"`
	Tools      []string                `yaml:"tools"`
	// Approvals makes plans with a confidence between Propose and Act wait for approval; so does a Webhook.
	Approvals bool `yaml:"approvals"`
	// ApprovalTime limits how long a plan waits for approval.
	ApprovalTime time.Duration `yaml:"approval_time"`
	Webhook      Webhook       `yaml:"webhook"`
}

// Webhook receives plans that wait for approval.
type Webhook struct {
	URL        string `yaml:"url"`
	SecretEnv  string `yaml:"secret_env"`
	SecretFile string `yaml:"secret_file"`
	Secret     string `yaml:"-"` // signs the requests
}

// Defaults returns the configuration that applies when none is given: the request's own target is the planner.
func Defaults() Config {
	return Config{Upstream: Same, Mode: ModeAct, Wait: 2 * time.Second, Timeout: 30 * time.Second, Concurrent: 8,
		Act: 0.8, Propose: 0.5, ApprovalTime: 10 * time.Minute}
}

// approved reports whether plans can be approved.
func (c Config) approved() bool { return c.Approvals || c.Webhook.URL != "" }

// Enabled reports whether a planner is configured.
func (c Config) Enabled() bool { return c.Upstream != "" }

// Validate reports every problem as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	hook := c.Webhook
	problems.Check(c.Mode != ModeObserve && c.Mode != ModeAct, "mode: %q is none of observe, act", string(c.Mode))
	problems.Check(c.Model == "" && c.Upstream != "" && c.Upstream != Same, "model: is needed, unless upstream is same")
	problems.Check(c.Wait < 0 || c.Wait > 30*time.Second, "wait: must be between 0s and 30s")
	problems.Check(c.Timeout <= 0 || c.Timeout > time.Minute, "timeout: must be above 0s and at most 1m")
	problems.Check(c.Concurrent < 1 || c.Concurrent > 1024, "concurrent: must be between 1 and 1024")
	problems.Check(c.ApprovalTime < time.Second || c.ApprovalTime > time.Hour, "approval_time: must be between 1s and 1h")
	problems.Check(!(c.Propose > 0), "propose: must be above 0")
	problems.Check(!(c.Propose <= c.Act && c.Act <= 1), "act: must be at most 1 and no less than propose")
	for i, s := range c.Strategies {
		problems.Check(!slices.Contains(recovery.PlanStrategies(), s), "strategies[%d]: %q is none of %v", i, short(string(s)), recovery.PlanStrategies())
	}
	for i, p := range c.Tools {
		_, err := path.Match(p, "x")
		problems.Check(err != nil || p == "", "tools[%d]: %q is not a pattern", i, short(p))
	}
	problems.Check((hook.SecretEnv != "" || hook.SecretFile != "") && hook.URL == "", "webhook.url: is needed with a secret")
	problems.Check(hook.URL != "" && (hook.SecretEnv == "") == (hook.SecretFile == ""), "webhook.secret_env: or webhook.secret_file is needed: what is sent is signed")
	return problems.Err()
}

// band returns the band of a confidence.
func (c *Config) band(confidence float64) recovery.PlanBand {
	switch {
	case confidence >= c.Act:
		return recovery.BandAct
	case confidence >= c.Propose:
		return recovery.BandPropose
	}
	return recovery.BandEscalate
}

// permits reports whether a plan uses only what the configuration lists.
func (c *Config) permits(p *recovery.Plan) bool {
	if len(c.Strategies) > 0 && !slices.Contains(c.Strategies, p.Strategy) {
		return false
	}
	return p.Tool == "" || len(c.Tools) == 0 || slices.ContainsFunc(c.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, p.Tool)
		return ok && err == nil
	})
}
