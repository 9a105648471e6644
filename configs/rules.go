package configs

import (
	"crypto/sha256"
	"embed"
	"encoding/gob"
	"io/fs"
	"reflect"

	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// ruleFiles holds the rules: a folder of YAML files for each set, and beside it the same set as parsed when the program was
// built, because parsing takes twenty times as long. `go test ./configs -run TestParsedRules -update` writes those.
//
//go:embed rules
var ruleFiles embed.FS

// UpstreamRules returns the rules that recognise upstream errors in the order in
// which they are tried: the files in rules/upstream by name.
func UpstreamRules() (rule.Set, error) { return loadRules("rules/upstream") }

// ToolRules returns the rules that recognise failures in tool results, from
// rules/tools. Otherwise it is like UpstreamRules.
func ToolRules() (rule.Set, error) { return loadRules("rules/tools") }

// PreferenceRules returns the rules that recognise what users and instructions
// forbid, from rules/preferences.
func PreferenceRules() (rule.Set, error) { return loadRules("rules/preferences") }

// parsedRules is a parsed set with the needs of its patterns.
type parsedRules struct {
	Source [sha256.Size]byte // hash of the YAML files
	Set    rule.Set
}

// loadRules returns the parsed set of a folder, or parses the files again if they have changed since.
func loadRules(folder string) (rule.Set, error) {
	files, err := readFolder(folder)
	if err != nil {
		return rule.Set{}, err
	}
	if data, err := ruleFiles.Open(folder + ".gob"); err == nil {
		defer data.Close()
		var parsed parsedRules
		if gob.NewDecoder(data).Decode(&parsed) == nil && parsed.Source == hashOf(files) {
			return parsed.Set, nil
		}
	}
	return parseRules(files)
}

// ruleFile is a YAML file of rules.
type ruleFile struct {
	name string
	text []byte
}

// readFolder returns the YAML files of a folder by name.
func readFolder(folder string) (files []ruleFile, err error) {
	names, err := fs.Glob(ruleFiles, folder+"/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := ruleFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, ruleFile{name, text})
	}
	return files, nil
}

func hashOf(files []ruleFile) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, f := range files {
		h.Write(f.text)
	}
	h.Sum(sum[:0])
	return sum
}

// parseRules joins the sets of YAML files.
func parseRules(files []ruleFile) (rule.Set, error) {
	var sets []rule.Set
	for _, f := range files {
		var set rule.Set
		if r := newReader(f.name); !r.readInto(reflect.ValueOf(&set).Elem(), f.text) || len(r.problems) > 0 {
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
