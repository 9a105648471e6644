package app

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// A reload compiles the rules again only if the operator's have changed.
func TestRulesAreKept(t *testing.T) {
	own := func(name string) *configs.Config {
		c := &configs.Config{}
		c.Inspect.Rules = []rule.Rule{{Name: name, Class: "none", Any: []string{"x"}, Examples: []string{"x"}}}
		return c
	}
	first := rules{}.forConfig(own("a"))
	if same := first.forConfig(own("a")); same.tools != first.tools || same.upstream != first.upstream {
		t.Error("unchanged rules are compiled again")
	}
	if other := first.forConfig(own("b")); other.tools == first.tools {
		t.Error("changed rules are not compiled")
	}
}
