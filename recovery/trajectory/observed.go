package trajectory

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxObserved is how many of the last messages are looked at for how tools are used.
const maxObserved = 60

// Abilities are those of tools, in their order. Agents send the same definitions with
// each request: callers may keep what comes of them.
func Abilities(list []transcript.Tool) []Ability {
	out := make([]Ability, len(list))
	for i, t := range list {
		out[i] = AbilityOf(t)
	}
	return out
}

// Observe adds what the calls among the last messages show of tools: which parameter
// of theirs is given command lines, addresses or paths, where neither its name nor its
// schema says so, and what the tool is for, where nothing else does.
func Observe(tools []Tool, list []transcript.Message) {
	if !slices.ContainsFunc(tools, func(t Tool) bool { return t.vague() }) {
		return
	}
	for _, m := range slices.Backward(list[max(0, len(list)-maxObserved):]) {
		if m.Role != transcript.RoleAssistant {
			continue
		}
		for _, c := range m.ToolCalls() {
			if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == c.Name }); i >= 0 && tools[i].vague() {
				tools[i].observe(c.Text())
			}
		}
	}
}

// vague reports whether something of the tool is not known.
func (t *Tool) vague() bool {
	return t.Uses == 0 && len(t.Params) == 0 || slices.ContainsFunc(t.Params, func(p Parameter) bool { return p.Holds == 0 })
}

func (t *Tool) observe(arguments string) {
	arguments = strings.TrimSpace(arguments)
	if len(arguments) > maxCallArguments || !strings.HasPrefix(arguments, "{") || transcript.Valid([]byte(arguments), 32) != nil {
		return
	}
	params, given := slices.Clone(t.Params), Holds(0) // they may be shared
	gjson.Parse(arguments).ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.String {
			return true
		}
		i := slices.IndexFunc(params, func(p Parameter) bool { return p.Name == key.Str })
		switch {
		case i >= 0 && params[i].Holds == 0:
			params[i].Holds = seen(v.Str)
			given |= params[i].Holds
		case i < 0 && len(params) == 0:
			given |= seen(v.Str)
		}
		return true
	})
	t.Params = params
	switch {
	case t.Uses != 0 || traitsOf(NameWords(t.Name))&minderWord != 0:
	case given&HoldsCommand != 0:
		t.Uses, t.Changes = UseShell, true
	case given&HoldsURL != 0:
		t.Uses = UseFetch
	}
}

// seen is what a value is, as far as its form tells: 0 for words.
func seen(value string) Holds {
	value = strings.TrimSpace(value)
	switch {
	case strings.HasPrefix(value, "https://"), strings.HasPrefix(value, "http://"):
		return HoldsURL
	case strings.ContainsAny(value, "\n") || len(value) < 2 || len(value) > maxSearched:
		return 0
	case !strings.ContainsAny(value, " \t|&;<>*?\"'") && (value[0] == '/' || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") ||
		strings.HasPrefix(value, "~/") || len(value) > 2 && value[1] == ':' && (value[2] == '\\' || value[2] == '/')):
		return HoldsPath
	}
	c := ParseCommand(value)
	if len(c.Programs) == 0 || c.file == nil || !strings.Contains(value, " ") {
		return 0
	}
	first, _, _ := strings.Cut(c.Programs[0], " ")
	if options := strings.Contains(value, " -") || strings.ContainsAny(value, "|&;>"); verbs[first] || looks[first] && options {
		return HoldsCommand
	}
	return 0
}
