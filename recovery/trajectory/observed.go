package trajectory

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// maxObserved limits how many of the last messages are searched for uses of tools.
const maxObserved = 60

// Abilities returns the abilities of tools, in their order. Agents send the same definitions with each request,
// so callers may cache the result.
func Abilities(list []transcript.Tool) []Ability {
	out := make([]Ability, len(list))
	for i, t := range list {
		out[i] = AbilityOf(t)
	}
	return out
}

// Observe adds what the calls in the last messages show about tools: which parameters receive command lines,
// URLs or paths, if neither name nor schema says so, and what the tool is for, if nothing else says so.
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

// vague reports whether the uses or a parameter of the tool are unknown.
func (t *Tool) vague() bool {
	return t.Uses == 0 && len(t.Params) == 0 || slices.ContainsFunc(t.Params, func(p Parameter) bool { return p.Holds == 0 })
}

func (t *Tool) observe(arguments string) {
	arguments = strings.TrimSpace(arguments)
	if len(arguments) > maxCallArguments || !strings.HasPrefix(arguments, "{") || transcript.Valid([]byte(arguments), 32) != nil {
		return
	}
	params, given := slices.Clone(t.Params), Holds(0) // clones Params because they may be shared
	gjson.Parse(arguments).ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.String {
			return true
		}
		i := slices.IndexFunc(params, func(p Parameter) bool { return p.Name == key.Str })
		switch {
		case i >= 0 && params[i].Holds == 0:
			params[i].Holds = holdsByForm(v.Str)
			given |= params[i].Holds
		case i < 0 && len(params) == 0:
			given |= holdsByForm(v.Str)
		}
		return true
	})
	t.Params = params
	switch {
	case t.Uses != 0 || traitsOf(NameWords(t.Name))&manageWord != 0:
	case given&HoldsCommand != 0:
		t.Uses, t.Changes = UseShell, true
	case given&HoldsURL != 0:
		t.Uses = UseFetch
	}
}

// holdsByForm returns what a value is, by its form: 0 for text.
func holdsByForm(value string) Holds {
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
	if options := strings.Contains(value, " -") || strings.ContainsAny(value, "|&;>"); verbs[first] || readOnlyPrograms[first] && options {
		return HoldsCommand
	}
	return 0
}
