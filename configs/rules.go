package configs

import (
	"embed"
	"io/fs"
	"reflect"
	"sync"

	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

//go:embed rules
var ruleFiles embed.FS

// Rule sets are parsed once in a process, which takes some tens of milliseconds. Callers must not change them.
var (
	upstreamRules   = sync.OnceValues(func() (rule.Set, error) { return readRules("rules/upstream") })
	toolRules       = sync.OnceValues(func() (rule.Set, error) { return readRules("rules/tools") })
	preferenceRules = sync.OnceValues(func() (rule.Set, error) { return readRules("rules/preferences") })
)

// UpstreamRules returns the rules that recognise upstream errors in the order in
// which they are tried: the files in rules/upstream by name.
func UpstreamRules() (rule.Set, error) { return upstreamRules() }

// ToolRules returns the rules that recognise failures in tool results, from
// rules/tools. Otherwise it is like UpstreamRules.
func ToolRules() (rule.Set, error) { return toolRules() }

// PreferenceRules returns the rules that recognise what users and instructions
// forbid, from rules/preferences.
func PreferenceRules() (rule.Set, error) { return preferenceRules() }

// readRules joins the files of a folder.
func readRules(folder string) (rule.Set, error) {
	files, err := fs.Glob(ruleFiles, folder+"/*.yaml")
	if err != nil {
		return rule.Set{}, err
	}
	var sets []rule.Set
	for _, name := range files {
		data, err := ruleFiles.ReadFile(name)
		if err != nil {
			return rule.Set{}, err
		}
		var set rule.Set
		if r := newReader(name); !r.readInto(reflect.ValueOf(&set).Elem(), data) || len(r.problems) > 0 {
			return rule.Set{}, sortProblems(r.problems)
		}
		sets = append(sets, set)
	}
	return rule.Join(sets...), nil
}

// checkRules runs the examples of the operator's rules, followed by the built-in rules. Without operator's rules it
// parses no rules.
func (r *reader) checkRules(c *Config) {
	if own := c.Classify.Rules; len(own) > 0 && !r.failed("classify") {
		r.reportAll("classify", classify.New(UpstreamRules, own...).Check(len(own)))
	}
	if own := c.Inspect.Rules; len(own) > 0 && !r.failed("inspect") {
		r.reportAll("inspect", inspect.NewRules(ToolRules, own...).Check(len(own)))
	}
}
