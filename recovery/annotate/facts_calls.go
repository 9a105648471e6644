package annotate

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// unavailable finds the unknown tool in the message of agents that call a tool of their own in its place.
var unavailable = recovery.NewPattern(`unavailable tool '([\w.:/-]{2,100})'`)

// wrongTool returns the called name that is no tool of the request, or "".
func (s *failureContext) wrongTool() string {
	if m := unavailable.FindAllStringSubmatch(s.f.Line, 1); m != nil && strings.Contains(s.f.Arguments, m[0][1]) {
		return m[0][1]
	}
	if t, _ := s.definition(s.f.Tool); t.Raw != nil { // otherwise it is known only because it was called
		return ""
	}
	return s.f.Tool
}

// flaw is a mismatch between a call and the tool's definition.
type flaw struct{ param, text string }

// flaws compares the failing call with the definition of its tool: missing and unknown parameters, types and
// allowed values, on the top level only.
func (s *failureContext) flaws() (out []flaw) {
	def, _ := s.definition(s.f.Tool)
	params := def.Params
	if len(params) == 0 {
		return nil
	}
	if s.f.Arguments != "" && !s.args.IsObject() {
		return []flaw{{text: "the arguments are not one valid JSON object"}}
	}
	given := map[string]gjson.Result{}
	var unknown, lacking, declared []string
	for _, p := range params {
		declared = append(declared, p.Name)
	}
	s.args.ForEach(func(k, v gjson.Result) bool {
		given[k.String()] = v
		if !slices.Contains(declared, k.String()) {
			unknown = append(unknown, k.String())
		}
		return len(given) < 64
	})
	for _, p := range params {
		if v, ok := given[p.Name]; !ok && p.Required {
			lacking = append(lacking, p.Name)
		} else if text := mismatch(p, v); ok && text != "" {
			out = append(out, flaw{p.Name, text})
		}
	}
	for _, m := range lacking {
		text := "the required parameter " + quoted(m) + " is missing"
		i := slices.IndexFunc(unknown, func(u string) bool { return len(lacking)+len(unknown) == 2 || trajectory.Nearest(u, []string{m}) != "" })
		if i >= 0 {
			text += " (the call says " + quoted(unknown[i]) + ")"
		}
		out = append(out, flaw{param: m, text: text})
	}
	for _, u := range unknown {
		text := "there is no parameter " + quoted(u)
		n := trajectory.Nearest(u, declared)
		if n != "" {
			text += ": it is called " + quoted(n)
		}
		out = append(out, flaw{n, text})
	}
	return out
}

// mismatch says why a value does not fit a parameter; it returns "" if the value fits.
func mismatch(p trajectory.Parameter, v gjson.Result) string {
	schema := gjson.Parse(p.Schema)
	want, allowed := types(schema), schema.Get("enum").Array()
	if len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return fits(v, t) }) {
		return "the parameter " + quoted(p.Name) + " must be of type " + strings.Join(want, " or ") + ", and the call gives " + typeOf(v)
	}
	if len(allowed) == 0 || slices.ContainsFunc(allowed, func(a gjson.Result) bool { return a.Raw == v.Raw }) {
		return ""
	}
	var names []string
	for _, a := range allowed {
		names = append(names, a.String())
	}
	return "the parameter " + quoted(p.Name) + " must be one of " + listed(names, 8, "or")
}

// types returns the JSON types that a schema allows; nil means any.
func types(schema gjson.Result) (out []string) {
	for _, v := range schema.Get("type").Array() {
		out = append(out, v.String())
	}
	return out[:min(len(out), 8)]
}

// fits reports whether a value has a JSON type. Every value fits a type that JSON Schema does not know, such as "any" or "dict".
func fits(v gjson.Result, want string) bool {
	switch want {
	case "integer":
		return v.Type == gjson.Number && !strings.ContainsAny(v.Raw, ".eE")
	case "number", "string", "boolean", "array", "object", "null":
		return strings.HasSuffix(typeOf(v), want)
	}
	return true
}

func typeOf(v gjson.Result) string {
	switch {
	case v.IsArray():
		return "an array"
	case v.IsObject():
		return "an object"
	case v.IsBool():
		return "a boolean"
	case v.Type == gjson.Null:
		return "null"
	}
	return "a " + strings.ToLower(v.Type.String())
}

// schemaFlaw returns the first flaw of the failing call that the error message is about.
func (s *failureContext) schemaFlaw() fact {
	if s.runs() {
		return fact{}
	}
	for _, f := range s.flaws() {
		if f.param == "" || trajectory.HasWord(s.content, f.param) || strings.Contains(f.text, "it is called") {
			got := fact{say: strings.ToUpper(f.text[:1]) + f.text[1:] + "."}
			if f.param != "" {
				got.call = "Make the same call with " + quoted(f.param) + " as its definition says."
			}
			return got
		}
	}
	// A parameter that is required only together with another one.
	lacking := s.findParameter(func(p trajectory.Parameter) bool {
		return trajectory.HasWord(s.f.Line, p.Name) && lackingWords.MatchString(s.f.Line) && !s.args.Get(gjson.Escape(p.Name)).Exists()
	})
	if lacking.Name == "" {
		return fact{}
	}
	name := quoted(lacking.Name)
	return fact{say: "The call has no " + name + ".", call: "Make the same call with " + name + " as its definition says."}
}

// lackingWords matches messages about something missing.
var lackingWords = recovery.NewPattern(`(?i)\b(?:required|missing|must (?:be )?(?:provided?|specified|given)|not (?:provided|specified))\b`)

// findParameter returns the first parameter of the failing tool's definition for which as returns true, or the zero
// value.
func (s *failureContext) findParameter(as func(trajectory.Parameter) bool) (p trajectory.Parameter) {
	def, _ := s.definition(s.f.Tool)
	if i := slices.IndexFunc(def.Params, as); i >= 0 {
		p = def.Params[i]
	}
	return p
}

// runs reports whether the failing tool runs commands or code, so that its error message is about those and not
// about the call.
func (s *failureContext) runs() bool {
	return s.failingCall.Line() != "" || s.usedFor(s.f.Tool, trajectory.UseShell|trajectory.UseCode)
}

// browsing and ofFiles are words in the names of tools that look through files.
var (
	browsing = []string{"browser", "browse", "explorer", "explore", "navigator", "viewer"}
	ofFiles  = []string{"repo", "repository", "file", "files", "dir", "directory", "folder", "code", "codebase", "workspace", "project"}
)

// nearestTool returns the offered tool that an unknown name probably means: the same name in another spelling, or
// tools with the same use. A shell covers everything that works on files.
func (s *failureContext) nearestTool() fact {
	wrong := s.wrongTool()
	names := s.others(wrong)
	if wrong == "" || len(names) == 0 {
		return fact{}
	}
	best := trajectory.Nearest(wrong[strings.LastIndexAny(wrong, ".:/")+1:], names)
	if best != "" {
		return fact{say: "There is no tool " + quoted(wrong) + "; " + quoted(best) + " is there.", call: "Call " + quoted(best) + " instead" + s.requiredParameters(best) + "."}
	}
	uses := trajectory.ToolOf(transcript.Tool{Name: wrong}).Uses
	if words := trajectory.NameWords(wrong); trajectory.AnyOf(words, browsing) && trajectory.AnyOf(words, ofFiles) {
		uses = trajectory.UseList | trajectory.UseRead
	}
	same := s.usedLike(uses, wrong)
	if len(same) == 0 && uses&working != 0 {
		same = s.usedLike(trajectory.UseShell, wrong)
	}
	switch {
	case len(same) > 0:
		return fact{say: "There is no tool " + quoted(wrong) + "; " + listed(same, 3, "and") + " can do that.", call: "Call " + quoted(same[0]) + " instead" + s.requiredParameters(same[0]) + "."}
	case len(names) <= maxNamed:
		return fact{say: "There is no tool " + quoted(wrong) + ", only " + listed(names, maxNamed, "and") + "."}
	}
	return fact{}
}

// usedLike returns one tool for each of the uses, except the one in but, and a shell only if there is no other.
func (s *failureContext) usedLike(uses trajectory.Use, but string) (names []string) {
	for _, use := range []trajectory.Use{trajectory.UseList, trajectory.UseRead, trajectory.UseSearch, trajectory.UseWrite,
		trajectory.UseShell, trajectory.UseCode, trajectory.UseFetch} {
		i := slices.IndexFunc(s.tools(), func(t trajectory.Tool) bool {
			return t.Uses&use&uses != 0 && t.Name != but && !slices.Contains(names, t.Name)
		})
		if i >= 0 && (len(names) == 0 || use != trajectory.UseShell) {
			names = append(names, s.tools()[i].Name)
		}
	}
	return names
}

// others returns the names of all tools except one.
func (s *failureContext) others(but string) (names []string) {
	for _, t := range s.tools() {
		if t.Name != "" && t.Name != but {
			names = append(names, t.Name)
		}
	}
	return names
}

// requiredParameters words the required parameters of a tool.
func (s *failureContext) requiredParameters(name string) string {
	def, _ := s.definition(name)
	var list []string
	for _, p := range def.Params {
		if p.Required {
			list = append(list, p.Name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " with " + listed(list, 6, "and")
}

// maxNamed limits how many tools a note names.
const maxNamed = 9
