package annotate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// AskUser is the last strategy of every chain: the model asks the user for something specific.
const AskUser = "ask_user"

// Strategy is one way to continue after a failure of its chain's category.
type Strategy struct {
	// Name is stable: events, metrics and Config.Forbid use it.
	Name string `yaml:"name"`
	// Priority decides between equal scores: lower goes first.
	Priority int `yaml:"priority"`
	// Confidence is the prior probability that the strategy helps, above 0 and at most 1.
	Confidence float64 `yaml:"confidence"`
	// Iterations is the expected number of calls until it helps, at least 1.
	Iterations int `yaml:"iterations"`
	// Needs lists kinds of tools; the request must offer at least one of them. Empty means no tool is needed.
	Needs []string `yaml:"needs"`
	// Does lists the deeds of the strategy that a user may have forbidden: see [recovery.DeedNames]. A risky strategy
	// without a list counts as one that installs, deletes and changes permissions.
	Does []string `yaml:"does"`
	// Risky marks a strategy that installs, deletes or changes permissions.
	Risky bool `yaml:"risky"`
	// Steps are templates, written into the note in order; see [checkTemplate].
	Steps []string `yaml:"steps"`
}

// Chains holds the strategies of each category, by the category's name, and of [recovery.EditFailed]. It is
// read-only.
type Chains map[string][]Strategy

// With returns the chains with an operator's changes applied. An entry with the name of an existing strategy
// changes that strategy: zero values keep the old value, and a risky strategy stays risky. Any other entry adds
// a strategy. The error joins all problems; each message begins with the key, such as
// chains.file_not_found[0].name.
func (c Chains) With(cfg Config) (Chains, error) {
	var errs []error
	out := maps.Clone(c)
	for _, category := range slices.Sorted(maps.Keys(cfg.Chains)) {
		if len(c[category]) > 0 {
			chain, problems := changed(c[category], cfg.Chains[category], "chains."+category)
			out[category], errs = chain, append(errs, problems...)
			continue
		}
		key := "chains"
		if strategyName.MatchString(category) {
			key += "." + category
		}
		names := slices.Sorted(maps.Keys(c))
		errs = append(errs, fmt.Errorf("%s: there is no category %q: %s", key, short(category),
			hint(category, names, "there are "+strings.Join(names, ", "))))
	}
	var names []string
	for _, category := range slices.Sorted(maps.Keys(out)) {
		for _, s := range out[category] {
			names = append(names, s.Name)
		}
	}
	for i, name := range cfg.Forbid {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("forbid[%d]: no strategy is called %q: %s", i, short(name), hint(name, names, "see the chains for their names")))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// changed returns a chain with the entries applied, and the problems of the entries. key is the configuration
// key of the entries.
func changed(chain, entries []Strategy, key string) (out []Strategy, errs []error) {
	out = slices.Clone(chain)
	for i, s := range entries {
		at := fmt.Sprintf("%s[%d]", key, i)
		if slices.ContainsFunc(entries[:i], func(o Strategy) bool { return o.Name == s.Name }) {
			errs = append(errs, fmt.Errorf("%s.name: %q is used twice in this chain", at, short(s.Name)))
		}
		k := slices.IndexFunc(out, func(o Strategy) bool { return o.Name == s.Name })
		if k < 0 {
			k = len(out) - 1 // before ask_user
			out = slices.Insert(out, k, Strategy{Name: s.Name})
		}
		out[k] = out[k].changed(s)
		errs = append(errs, out[k].check(at)...)
	}
	return out, errs
}

// hint suggests the closest of the names, or returns otherwise if none is close.
func hint(name string, names []string, otherwise string) string {
	if near := trajectory.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// changed returns the strategy with an operator's entry applied.
func (s Strategy) changed(by Strategy) Strategy {
	s.Priority = cmp.Or(by.Priority, s.Priority)
	s.Confidence = cmp.Or(by.Confidence, s.Confidence)
	s.Iterations = cmp.Or(by.Iterations, s.Iterations)
	s.Risky = s.Risky || by.Risky
	if by.Needs != nil {
		s.Needs = by.Needs
	}
	if by.Does != nil {
		s.Does = by.Does
	}
	if len(by.Steps) > 0 {
		s.Steps = by.Steps
	}
	return s
}

var strategyName = recovery.NewPattern(`^[a-z][a-z0-9_]{1,39}$`)

// elevated matches commands that run as another user. No step contains them, whatever the configuration permits,
// because only a person may decide that.
var elevated = recovery.NewPattern(`(?i)\b(?:sudo|doas|pkexec|gsudo|runas)\b|\bsu\s+(?:-|root\b)`)

// dangerous matches words for installing, deleting and changing permissions.
var dangerous = recovery.NewPattern(`(?i)\b(?:(?:un)?install(?:s|ed|ing)?|delet(?:e|es|ed|ing)|remov(?:e|es|ed|ing)|rm|rmdir|unlink|shred|` +
	`truncate|mkfs|chmod|chown|chgrp|setfacl|icacls|takeown|kill|pkill|killall|reboot|shutdown)\b|` +
	`\b(?:apt|apt-get|yum|dnf|apk|brew|pacman|choco|winget|pip3?|npm|pnpm|yarn|cargo|gem|go)\s+(?:add|get|i)\b|\bdd\s+if=|--force\b|\breset --hard\b|\bgit clean\b`)

// check reports every problem of a complete strategy.
func (s Strategy) check(key string) (errs []error) {
	require := func(ok bool, part, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s.%s: %s", key, part, fmt.Sprintf(format, args...)))
		}
	}
	asks := s.Name == AskUser
	require(strategyName.MatchString(s.Name), "name", "%q cannot be a name: use 2 to 40 lower-case letters, digits and _", short(s.Name))
	require(s.Confidence > 0 && s.Confidence <= 1, "confidence", "a new strategy needs one, above 0 and at most 1")
	require(s.Iterations >= 1, "iterations", "a new strategy needs an estimate, at least 1")
	for i, name := range s.Needs {
		require(needed([]string{name}) != 0, fmt.Sprintf("needs[%d]", i), "%q is no kind of tool: there are %s", short(name), strings.Join(needNames[:], ", "))
	}
	for i, name := range s.Does {
		require(recovery.DeedsOf(name) != 0, fmt.Sprintf("does[%d]", i), "%q is not a known deed: there are %s", short(name), strings.Join(recovery.DeedNames(), ", "))
	}
	require(len(s.Steps) > 0, "steps", "a new strategy needs at least one step")
	for i, step := range s.Steps {
		part, err := fmt.Sprintf("steps[%d]", i), checkTemplate(step)
		require(err == nil, part, "%v", err)
		require(err != nil || !elevated.MatchString(step), part, "tells the agent to run something as another user (%s): steps never do, leave that to %s", elevated.FindString(step), AskUser)
		require(err != nil || elevated.MatchString(step) || asks || s.Risky || !dangerous.MatchString(step), part,
			"%q installs, deletes or changes permissions: mark the strategy with risky: true", dangerous.FindString(step))
	}
	if asks && (s.Risky || len(s.Needs) > 0) {
		errs = append(errs, fmt.Errorf("%s: %s needs no tool and is never risky", key, AskUser))
	}
	require(!asks || len(s.Steps) == 1, "steps", "%s has one step: what a person can do", AskUser)
	require(!asks || len(s.Steps) != 1 || checkTemplate(s.Steps[0]) != nil || plain(s.Steps[0]) != "", "steps[0]", "the last alternative must have no slot")
	return errs
}
