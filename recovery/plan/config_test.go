package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/plan"
)

// Each mistake is told with its key, and the defaults have none.
func TestConfig(t *testing.T) {
	if err := plan.Defaults().Validate(); err != nil || !plan.Defaults().Enabled() || plan.Defaults().Force {
		t.Error(err)
	}
	for want, change := range map[string]func(*plan.Config){
		"mode: ":               func(c *plan.Config) { c.Mode = "perhaps" },
		"model: ":              func(c *plan.Config) { c.Upstream = "other" },
		"wait: ":               func(c *plan.Config) { c.Wait = time.Hour },
		"timeout: ":            func(c *plan.Config) { c.Timeout = 0 },
		"concurrent: ":         func(c *plan.Config) { c.Concurrent = 0 },
		"approval_time: ":      func(c *plan.Config) { c.ApprovalTime = 0 },
		"act: ":                func(c *plan.Config) { c.Act = 0.4 },
		"strategies[0]: ":      func(c *plan.Config) { c.Strategies = []recovery.PlanStrategy{"hope"} },
		"tools[0]: ":           func(c *plan.Config) { c.Tools = []string{"["} },
		"webhook.url: ":        func(c *plan.Config) { c.Webhook.SecretEnv = "X" },
		"webhook.secret_env: ": func(c *plan.Config) { c.Webhook.URL = "https://x" },
	} {
		c := plan.Defaults()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
