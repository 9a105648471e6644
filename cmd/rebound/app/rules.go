package app

import (
	"reflect"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// rules holds the compiled rules, and the operator's rules among them.
type rules struct {
	own      [2][]rule.Rule
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
	return rules{own, classify.New(configs.UpstreamRules, own[0]...), inspect.NewRules(configs.ToolRules, own[1]...), inspect.NewPreferences(configs.PreferenceRules)}
}
