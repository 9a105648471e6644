package app

import (
	"reflect"
	"sync"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// rules holds the compiled rules.
type rules struct {
	own      [2][]rule.Rule // the operator's rules in upstream and tools
	upstream *classify.Table
	tools    *inspect.Rules

	preferences *inspect.Preferences
}

// forConfig returns the rules for a configuration: r if the operator's rules have not changed, so
// that a reload need not compile them again.
func (r rules) forConfig(cfg *configs.Config) rules {
	own := [2][]rule.Rule{cfg.Classify.Rules, cfg.Inspect.Rules}
	if r.tools != nil && reflect.DeepEqual(own, r.own) {
		return r
	}
	r = builtIn()
	if r.own = own; len(own[0]) > 0 {
		r.upstream = classify.New(configs.UpstreamRules, own[0]...)
	}
	if len(own[1]) > 0 {
		r.tools = inspect.NewRules(configs.ToolRules, own[1]...)
	}
	return r
}

// builtIn returns the rules without an operator's own, which are compiled once in a process.
var builtIn = sync.OnceValue(func() rules {
	return rules{upstream: classify.New(configs.UpstreamRules), tools: inspect.NewRules(configs.ToolRules), preferences: inspect.NewPreferences(configs.PreferenceRules)}
})
