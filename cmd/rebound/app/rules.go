package app

import (
	"reflect"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// rules are the compiled rules, with those of the operator that they were made of.
type rules struct {
	own      [2][]rule.Rule
	upstream *classify.Table
	tools    *inspect.Rules

	preferences *inspect.Preferences
}

// of are the rules for a configuration: the same where the operator's have not
// changed, so that a reload need not read all again.
func (r rules) of(cfg *configs.Config) rules {
	own := [2][]rule.Rule{cfg.Classify.Rules, cfg.Inspect.Rules}
	if r.tools != nil && reflect.DeepEqual(own, r.own) {
		return r
	}
	return rules{own, classify.New(configs.UpstreamRules, own[0]...), inspect.NewRules(configs.ToolRules, own[1]...), inspect.NewPreferences(configs.PreferenceRules)}
}
