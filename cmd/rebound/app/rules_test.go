package app

import (
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// A reload reads the rules anew only where the operator's have changed.
func TestRulesAreKept(t *testing.T) {
	own := func(name string) *configs.Config {
		c := &configs.Config{}
		c.Inspect.Rules = []rule.Rule{{Name: name, Class: "none", Any: []string{"x"}, Examples: []string{"x"}}}
		return c
	}
	first := rules{}.of(own("a"))
	if same := first.of(own("a")); same.tools != first.tools || same.upstream != first.upstream {
		t.Error("the same rules are read anew")
	}
	if other := first.of(own("b")); other.tools == first.tools {
		t.Error("changed rules are not read")
	}
}
