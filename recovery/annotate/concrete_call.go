package annotate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// toolInMessage finds the name that is no tool.
var toolInMessage = recovery.NewPattern(`(?i)(?:tool|function)(?: name)?:?\s+['"‘\x60]?([\w.:/-]{2,100})['"’\x60]?`)

// wrongTool is the name that is no tool: the call's, else the message's.
func (s *scene) wrongTool() string {
	if s.f.Tool != "" {
		if _, ok := s.definition(s.f.Tool); !ok || len(s.tools) == 0 || s.definedByCall(s.f.Tool) {
			return s.f.Tool
		}
	}
	for _, m := range toolInMessage.FindAllStringSubmatch(s.f.Line, 4) {
		if _, ok := s.definition(m[1]); !ok && !slices.Contains([]string{"not", "named", "called", "name", "is", "found"}, strings.ToLower(m[1])) {
			return strings.TrimRight(m[1], ".")
		}
	}
	return s.f.Tool
}

// definedByCall reports whether a tool is only known because it was called.
func (s *scene) definedByCall(name string) bool {
	t, ok := s.definition(name)
	return ok && t.Raw == nil
}

// nearestTool is the offered tool that comes closest to a name that is none: by
// its letters, its words, and what it is for.
func (s *scene) nearestTool(wrong string) string {
	if i := strings.LastIndexAny(wrong, ".:/"); i >= 0 && i < len(wrong)-2 {
		if _, ok := s.definition(wrong[i+1:]); ok {
			return wrong[i+1:] // functions.read_file
		}
	}
	words, plain, kinds := trajectory.NameWords(wrong), trajectory.Plain(wrong), Kinds(transcript.Tool{Name: wrong})
	best, most := "", 0.4
	for _, t := range s.tools {
		if t.Name == "" || t.Name == wrong {
			continue
		}
		own, score := trajectory.NameWords(t.Name), 0.0
		if p := trajectory.Plain(t.Name); p == plain {
			score += 3
		} else if longest := max(len(p), len(plain)); longest > 0 && longest <= 96 {
			score += max(0, 1-2*float64(trajectory.Distance(plain, p, longest))/float64(longest))
		}
		both := 0
		for _, w := range own {
			if slices.Contains(words, w) {
				both++
			}
		}
		if all := len(own) + len(words) - both; all > 0 {
			score += float64(both) / float64(all)
		}
		if kinds != 0 && Kinds(t)&kinds != 0 {
			score++
		}
		if score > most {
			best, most = t.Name, score
		}
	}
	for _, t := range s.tools {
		if best == "" && kinds&(Code|Read|List|Search|Write|Shell) != 0 && Kinds(t)&Shell != 0 && t.Name != wrong {
			best = t.Name // a shell does all of these
		}
	}
	return best
}

func (s *scene) toolValue(name slot) string {
	wrong := s.wrongTool()
	var names, basic []string
	for _, t := range s.tools {
		if t.Name == "" || t.Name == wrong {
			continue
		}
		names = append(names, t.Name)
		if Kinds(t)&(Shell|Code|Read|List|Search|Write) != 0 {
			basic = append(basic, t.Name)
		}
	}
	switch name {
	case slotWrongTool:
		return quoted(wrong)
	case slotNearestTool:
		return quoted(s.nearestTool(wrong))
	case slotBasicTools:
		return listed(basic, 6, "and")
	}
	return listed(names, 12, "and")
}

// flaw is what of a call does not fit the tool's own definition.
type flaw struct {
	param, text string
}

// flaws compares the failing call with the definition of its tool: missing and
// unknown parameters, types, allowed values; only the outermost level.
func (s *scene) flaws() (out []flaw) {
	def, ok := s.definition(s.f.Tool)
	params := parameters(def)
	if !ok || len(params) == 0 {
		return nil
	}
	if s.f.Arguments != "" && !s.args.IsObject() {
		return []flaw{{"", "the arguments are not one valid JSON object"}}
	}
	var given, declared []string
	s.args.ForEach(func(k, _ gjson.Result) bool { given = append(given, k.String()); return len(given) < maxParameters })
	for _, p := range params {
		declared = append(declared, p.name)
	}
	for _, p := range params {
		if p.required && !slices.Contains(given, p.name) {
			text := "the required parameter " + quoted(p.name) + " is missing"
			for _, g := range given {
				if !slices.Contains(declared, g) && trajectory.Nearest(g, []string{p.name}) != "" {
					text += " (the call says " + quoted(g) + ")"
					break
				}
			}
			out = append(out, flaw{p.name, text})
		}
	}
	for _, p := range params {
		v, schema := field(s.args, p.name), gjson.Parse(p.schema)
		if v == nil {
			continue
		}
		if want := types(schema); len(want) > 0 && !fits(*v, want) {
			out = append(out, flaw{p.name, fmt.Sprintf("the parameter %s must be of type %s, and the call gives %s", quoted(p.name), oneLine(strings.Join(want, " or "), 60), typeOf(*v))})
		} else if allowed := schema.Get("enum").Array(); len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a gjson.Result) bool { return a.Raw == v.Raw || a.String() == v.String() }) {
			var names []string
			for _, a := range allowed[:min(len(allowed), 12)] {
				names = append(names, a.String())
			}
			out = append(out, flaw{p.name, "the parameter " + quoted(p.name) + " must be one of " + listed(names, 8, "or")})
		}
	}
	for _, g := range given {
		if !slices.Contains(declared, g) {
			text := "there is no parameter " + quoted(g)
			if n := trajectory.Nearest(g, declared); n != "" {
				text += ": it is called " + quoted(n)
			}
			out = append(out, flaw{trajectory.Nearest(g, declared), text})
		}
	}
	return out
}

// field is a member of an object, whatever characters its name has.
func field(o gjson.Result, name string) (out *gjson.Result) {
	o.ForEach(func(k, v gjson.Result) bool {
		if k.String() == name {
			out = &v
		}
		return out == nil
	})
	return out
}

// types are the JSON types that a schema allows, nil for any.
func types(schema gjson.Result) (out []string) {
	t := schema.Get("type")
	if t.IsArray() {
		for _, v := range t.Array() {
			out = append(out, v.String())
		}
	} else if t.Type == gjson.String {
		out = append(out, t.Str)
	}
	return out[:min(len(out), 8)]
}

func fits(v gjson.Result, want []string) bool {
	for _, t := range want {
		switch t {
		case "integer":
			if v.Type == gjson.Number && !strings.ContainsAny(v.Raw, ".eE") {
				return true
			}
		case "number", "string", "boolean", "null", "array", "object":
			if typeOf(v) == indefinite(t) {
				return true
			}
		default:
			return true // not ours to judge
		}
	}
	return false
}

func typeOf(v gjson.Result) string {
	switch {
	case v.Type == gjson.Number:
		return indefinite("number")
	case v.Type == gjson.String:
		return indefinite("string")
	case v.IsBool():
		return indefinite("boolean")
	case v.IsArray():
		return indefinite("array")
	case v.IsObject():
		return indefinite("object")
	}
	return indefinite("null")
}

func indefinite(t string) string {
	switch t {
	case "array", "object":
		return "an " + t
	case "null":
		return t
	}
	return "a " + t
}

// flaw is the one that the message is about, else the first.
func (s *scene) flaw() flaw {
	list := s.flaws()
	for _, f := range list {
		if f.param != "" && (hasWord(s.f.Line, f.param) || hasWord(s.content, f.param)) {
			return f
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	if def, ok := s.definition(s.f.Tool); ok && !s.runs(def) {
		for _, text := range [...]string{s.f.Line, s.content} {
			for _, p := range parameters(def) {
				if hasWord(text, p.name) {
					return flaw{param: p.name}
				}
			}
		}
	}
	return flaw{}
}

// runs reports whether the failing tool runs commands or code, so that its
// message is about those and not about the call.
func (s *scene) runs(t transcript.Tool) bool { return s.command != "" || Kinds(t)&(Shell|Code) != 0 }

func (s *scene) callValue(name slot) string {
	def, ok := s.definition(s.f.Tool)
	if !ok {
		return ""
	}
	fl := s.flaw()
	switch name {
	case slotProblem:
		return fl.text
	case slotParameter:
		return quoted(fl.param)
	case slotSchema:
		for _, p := range parameters(def) {
			if p.name == fl.param && fl.param != "" {
				return "`" + oneLine(compact(p.schema), maxExcerpt) + "`"
			}
		}
		return ""
	}
	if s.runs(def) && fl.text == "" {
		return "" // the command line is wrong, not the call
	}
	var names []string
	for _, p := range parameters(def) {
		if name == slotParameters || p.required {
			names = append(names, p.name)
		}
	}
	return listed(names, 12, "and")
}

// compact is a parameter's schema without what a large one has besides types.
func compact(schema string) string {
	if len(schema) <= 160 {
		return schema
	}
	var parts []string
	gjson.Parse(schema).ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "type", "enum", "format", "minimum", "maximum", "pattern", "minLength", "maxLength", "const", "required", "default":
			parts = append(parts, k.Raw+":"+oneLine(v.Raw, 80))
		case "items", "properties", "anyOf", "oneOf":
			parts = append(parts, k.Raw+":"+oneLine(v.Raw, 60))
		}
		return len(parts) < 8
	})
	return "{" + strings.Join(parts, ",") + "}"
}

// unknownOption says that there is no such option, not that its value is wrong.
var unknownOption = recovery.NewPattern(`(?i)unknown|unrecogni[sz]ed|unexpected|no such|not an option|(?:invalid|illegal|bad|undefined|unsupported) (?:command-line )?(?:option|flag|switch)|not defined|ambiguous option|wasn't expected`)

// options are the options of a usage text; choices its allowed values.
var (
	options = recovery.NewPattern(`--?[A-Za-z][\w-]*`)
	choices = recovery.NewPattern(`(?i)\b(?:choose from|one of(?: the following)?(?: values)?|(?:allowed|valid|possible|available|permitted|supported) (?:values|choices|options|arguments)(?: are)?|expected one of)[:=]? *[(\[{]? *([^\n()\[\]{}]{2,160})`)
)

func (s *scene) optionValue(name slot) string {
	if name == slotChoices {
		for _, text := range [...]string{s.f.Line, s.content} {
			if m := choices.FindStringSubmatch(text); m != nil && strings.ContainsAny(m[1], ",|'\"") { // else it is prose
				return quoted(strings.TrimRight(m[1], ". "))
			}
		}
		return ""
	}
	wrong := ""
	for _, v := range invocations(s.command) {
		for _, w := range v.words[1:] {
			flag, _, _ := strings.Cut(w, "=")
			if bare := strings.TrimLeft(flag, "-"); len(flag) > 1 && flag[0] == '-' && len(bare) > 0 && (hasWord(s.f.Line, flag) || len(bare) > 1 && hasWord(s.f.Line, bare)) {
				wrong = flag
			}
		}
	}
	if exists := !unknownOption.MatchString(s.f.Line); wrong == "" || exists != (name == slotValueOption) {
		return ""
	}
	if name != slotNearOption {
		return quoted(wrong)
	}
	var known []string
	for _, o := range options.FindAllString(s.content, 200) {
		if o != wrong && !slices.Contains(known, o) {
			known = append(known, o)
		}
	}
	return quoted(trajectory.Nearest(wrong, known))
}
