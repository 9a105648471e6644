package inspect_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/rule"
)

func init() { inspect.LoadForTests = configs.ToolRules }

func TestMain(m *testing.M) {
	recoverytest.RunWithRules(m, configs.ToolRules, inspect.NewRules(configs.ToolRules).Check)
}

// TestExamples: each rule decides its examples, and none of its lookalikes.
func TestExamples(t *testing.T) {
	if err := inspect.RulesForTests().Check(-1); err != nil {
		t.Error(err)
	}
	rules, err := inspect.RulesForTests().Rules()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules.Len() {
		r := rules.Rule(i)
		if len(r.Meaning) < 15 || len(r.Meaning) > 160 {
			t.Errorf("%s: the meaning is no sentence: %q", r.Name, r.Meaning)
		}
	}
}

// TestOwnRules: an operator's rules decide before those of the program, and their
// examples are run.
func TestOwnRules(t *testing.T) {
	own := rule.Rule{Name: "campus-proxy", Class: "permission_denied", Patterns: []string{"^proxy: not for you"}, Examples: []string{"proxy: not for you"}}
	rules := inspect.NewRules(configs.ToolRules, own)
	if err := rules.Check(1); err != nil {
		t.Error(err)
	}
	f := rules.Judge(recovery.ToolResult{Tool: "bash", Content: "proxy: not for you"})
	if !f.Failed || f.Category != recovery.PermissionDenied || f.Rule != "campus-proxy" {
		t.Errorf("judged %+v", f)
	}
	own.Codes = []string{"denied"}
	if err := inspect.NewRules(configs.ToolRules, own).Check(1); err == nil || !strings.Contains(err.Error(), "rules[0].codes: ") {
		t.Errorf("a rule on lines that asks for a code: %v", err)
	}
	own.Codes = nil
	own.Examples, own.Lookalikes = []string{"all is well"}, []string{"proxy: not for you"}
	err := inspect.NewRules(configs.ToolRules, own).Check(1)
	for _, want := range []string{"rules[0].examples[0]: is decided by no rule", "rules[0].lookalikes[0]: is decided by campus-proxy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
