package annotate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// toolInMessage finds the name that is no tool.
var toolInMessage = recovery.NewPattern(`(?i)(?:tool|function)(?: name)?:?\s+['"‘\x60]?([\w.:/-]{2,100})['"’\x60]?`)

// unavailable is such a name as the one certain form has it.
var unavailable = recovery.NewPattern(`unavailable tool '([\w.:/-]{2,100})'`)

// wrongTool is the name that is no tool: the call's, else the message's.
func (s *scene) wrongTool() string {
	for _, m := range unavailable.FindAllStringSubmatch(s.f.Line, 1) {
		if strings.Contains(s.f.Arguments, m[1]) { // some agents call another in its place
			return m[1]
		}
	}
	if t, ok := s.definition(s.f.Tool); s.f.Tool != "" && (!ok || t.Raw == nil) { // or only known because it was called
		return s.f.Tool
	}
	for _, m := range toolInMessage.FindAllStringSubmatch(s.f.Line, 4) {
		if _, ok := s.definition(m[1]); !ok && !slices.Contains([]string{"not", "named", "called", "name", "is", "found"}, strings.ToLower(m[1])) {
			return strings.TrimRight(m[1], ".")
		}
	}
	return s.f.Tool
}

// changing are words of tools that change files, rather than write them whole.
var changing = []string{"edit", "replace", "patch", "str", "diff"}

// nearestTool is the offered tool that comes closest to a name that is none: by
// what it is for, its letters and its words.
func (s *scene) nearestTool() string {
	wrong := s.wrongTool()
	if i := strings.LastIndexAny(wrong, ".:/"); i >= 0 && i < len(wrong)-2 {
		if _, ok := s.definition(wrong[i+1:]); ok {
			return wrong[i+1:] // functions.read_file
		}
	}
	others, uses := s.others(), trajectory.UsesOf(transcript.Tool{Name: wrong})
	family := "" // the word that all of them begin with
	if len(others) > 2 {
		family = first(others[0].Name)
	}
	for _, t := range others {
		if first(t.Name) != family || first(wrong) != family {
			family = ""
		}
	}
	own := func(name string) ([]string, string) {
		words, plain := trajectory.NameWords(name), trajectory.Plain(name)
		if family != "" {
			words, plain = words[1:], strings.TrimPrefix(plain, family)
		}
		return words, plain
	}
	words, plain := own(wrong)
	best, most := "", 0.6
	for _, t := range others {
		own, p := own(t.Name)
		score := 0.0
		if p == plain {
			score = 3
		} else if longest := max(len(p), len(plain)); longest <= 96 {
			score = max(0, 1-2*float64(trajectory.Distance(plain, p, longest))/float64(longest))
		}
		both := shared(own, words) * float64(len(own))
		score += both / max(float64(len(own)+len(words))-both, 1)
		if t.Uses&uses != 0 {
			score++
		}
		if trajectory.AnyOf(words, changing) && trajectory.AnyOf(own, changing) {
			score++
		}
		if score > most {
			best, most = t.Name, score
		}
	}
	if best == "" && (uses&working != 0 || slices.Contains(usual[:], first(wrong))) {
		for _, t := range others {
			if t.Uses&trajectory.UseShell != 0 {
				return t.Name // a shell does all of these
			}
		}
	}
	return best
}

// first is the first word of a tool's name.
func first(name string) string {
	if w := trajectory.NameWords(name); len(w) > 0 {
		return w[0]
	}
	return ""
}

// working are the uses of tools that work on a computer.
const working = trajectory.UseShell | trajectory.UseCode | trajectory.UseRead | trajectory.UseList | trajectory.UseSearch | trajectory.UseWrite

// others are the tools but the one that is none.
func (s *scene) others() []trajectory.Tool {
	wrong := s.wrongTool()
	return slices.DeleteFunc(slices.Clone(s.tools), func(t trajectory.Tool) bool { return t.Name == "" || t.Name == wrong })
}

// names are those of the other tools that are for one of the uses; 0 is any.
func (s *scene) names(uses trajectory.Use) (out []string) {
	for _, t := range s.others() {
		if uses == 0 || t.Uses&uses != 0 {
			out = append(out, t.Name)
		}
	}
	return out
}

// toolNames is the names of the other tools, unless there are many.
func (s *scene) toolNames() string {
	if names := s.names(0); len(names) <= maxNamed {
		return listed(names, maxNamed, "and")
	}
	return ""
}

// maxNamed is how many tools are named.
const maxNamed = 9

// flaw is what of a call does not fit the tool's own definition.
type flaw struct {
	param, text string
	unknown     bool // the definition has no such parameter
}

// flaws compares the failing call with the definition of its tool: missing and
// unknown parameters, types, allowed values; only the outermost level.
func (s *scene) flaws() (out []flaw) {
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
		v, ok := given[p.Name]
		schema := gjson.Parse(p.Schema)
		allowed := schema.Get("enum").Array()
		switch want := types(schema); {
		case !ok && p.Required:
			lacking = append(lacking, p.Name)
		case !ok:
		case len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return fits(v, t) }):
			out = append(out, flaw{param: p.Name, text: "the parameter " + quoted(p.Name) + " must be of type " + strings.Join(want, " or ") + ", and the call gives " + typeOf(v)})
		case len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a gjson.Result) bool { return a.Raw == v.Raw }):
			var names []string
			for _, a := range allowed {
				names = append(names, a.String())
			}
			out = append(out, flaw{param: p.Name, text: "the parameter " + quoted(p.Name) + " must be one of " + listed(names, 8, "or")})
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
		out = append(out, flaw{n, text, true})
	}
	return out
}

// types are the JSON types that a schema allows, nil for any.
func types(schema gjson.Result) (out []string) {
	for _, v := range schema.Get("type").Array() {
		out = append(out, v.String())
	}
	return out[:min(len(out), 8)]
}

// fits reports whether a value is of a JSON type; an unknown type fits all.
func fits(v gjson.Result, want string) bool {
	switch want {
	case "integer":
		return v.Type == gjson.Number && !strings.ContainsAny(v.Raw, ".eE")
	case "number", "string", "boolean", "array", "object":
		return strings.HasSuffix(typeOf(v), want)
	case "null":
		return v.Type == gjson.Null
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

// flaw is the one that the message is about, else the first; where the call fits,
// the parameter that the message names.
func (s *scene) flaw() flaw {
	list := s.flaws()
	for _, f := range list {
		if hasWord(s.f.Line, f.param) || hasWord(s.content, f.param) {
			return f
		}
	}
	for _, f := range list {
		if !s.runs() || !f.unknown { // a command that ran did not fail for a parameter too many
			return f
		}
	}
	if def, _ := s.definition(s.f.Tool); !s.runs() {
		found := ""
		s.args.ForEach(func(k, v gjson.Result) bool { // the one whose value it quotes
			if v.Type == gjson.String && len(v.Str) > 2 && len(v.Str) < maxQuoted && hasWord(s.f.Line, v.Str) {
				found = k.Str
			}
			return found == ""
		})
		if found != "" {
			return flaw{param: found}
		}
		for _, text := range [...]string{s.f.Line, s.content} {
			for _, p := range def.Params {
				if hasWord(text, p.Name) {
					return flaw{param: p.Name}
				}
			}
		}
	}
	return flaw{}
}

// runs reports whether the failing tool runs commands or code, so that its
// message is about those and not about the call.
func (s *scene) runs() bool {
	return s.made.Line() != "" || s.usedFor(s.f.Tool, trajectory.UseShell|trajectory.UseCode)
}

// relative is the path of the call, where the tool takes only absolute ones.
func (s *scene) relative() string {
	if p := trajectory.PathIn(s.f.Arguments); mustBeAbsolute.MatchString(s.f.Line) && !absolute(p) {
		return p
	}
	return ""
}

var mustBeAbsolute = recovery.NewPattern(`(?i)must be (?:an )?absolute|not an absolute path`)

// schema is what the definition says of the wrong parameter, without what a large
// one has besides types; nothing where the problem itself says it.
func (s *scene) schema() string {
	def, _ := s.definition(s.f.Tool)
	fl := s.flaw()
	if s.relative() != "" {
		return ""
	}
	for _, p := range def.Params {
		if p.Name != fl.param || strings.Contains(fl.text, " must be ") {
			continue
		}
		var parts []string
		gjson.Parse(p.Schema).ForEach(func(k, v gjson.Result) bool {
			if k.Str != "description" && k.Str != "title" {
				parts = append(parts, k.Raw+":"+oneLine(v.Raw, 80))
			}
			return len(parts) < 8
		})
		if len(parts) == 1 && gjson.Get(p.Schema, "type").Type == gjson.String {
			return "" // a plain type says nothing more
		}
		return oneLine("{"+strings.Join(parts, ",")+"}", maxExcerpt)
	}
	return ""
}

// unknownOption says that there is no such option, not that its value is wrong.
var unknownOption = recovery.NewPattern(`(?i)unknown|unrecogni[sz]ed|unexpected|no such|not an option|` +
	`(?:invalid|illegal|bad|undefined|unsupported) (?:command-line )?(?:option|flag|switch)|not defined|ambiguous option|wasn't expected`)

// getopt is how C's getopt names an option of one letter.
var getopt = recovery.NewPattern(`option -- '?(\w)\b`)

// options are the options of a usage text; choices its allowed values.
var (
	options = recovery.NewPattern(`--?[A-Za-z][\w-]*`)
	choices = recovery.NewPattern(`(?i)\b(?:choose from|one of(?: the following)?(?: values)?|` +
		`(?:allowed|valid|possible|available|permitted|supported) (?:values|choices|options|arguments|formats|commands)[^:=\n]{0,60}?(?: are)?|` +
		`expected one of)[:=]? *[(\[{]? *([^\n()\[\]{}]{2,160})`)
)

// allowed are the values that a message allows.
func (s *scene) allowed() string {
	for _, text := range [...]string{s.f.Line, s.content} {
		if m := choices.FindStringSubmatch(text); m != nil && strings.ContainsAny(m[1], ",|'\"") && !strings.Contains(text, "range of") { // else it is prose
			return strings.TrimRight(m[1], ". ")
		}
	}
	return ""
}

// howCalled are lines that say how a program is called, not what is wrong.
var howCalled = recovery.NewPattern(`(?i)^\s*(?:usage:|try ['"‘\x60])`)

// lacks is what a message says is missing.
var lacks = recovery.NewPattern(`(?i)\bmissing (?:(?:file |destination |required |mandatory )?(?:operand|argument|parameter|value)s?)\b.{0,60}|` +
	`\b(?:the following )?(?:required )?arguments? (?:are|is|were) (?:required|not provided)\b(?:: .{1,80})?|` +
	`\b(?:requires|expects|needs) (?:at least |exactly )?(?:a|an|one|two|three|\d+) (?:argument|operand|value|parameter)s?\b`)

// lack is that, for a command line.
func (s *scene) lack() string {
	if s.made.Line() == "" {
		return ""
	}
	return strings.TrimRight(lacks.FindString(s.f.Line), ".: ")
}

// value is a word of the command line, or what stands behind the equals sign in
// one, that the message quotes, and the option before it.
func (s *scene) value() string {
	for _, m := range inQuotes.FindAllStringSubmatch(s.f.Line, 8) {
		given := cmp.Or(m[1:]...)
		for _, v := range s.parts {
			for i, w := range v.Words[1:] {
				_, after, ok := strings.Cut(w, "=")
				switch before := v.Words[i]; {
				case w != given && (!ok || after != given), given[0] == '-', len(given) > maxQuoted, secret.MatchString(v.Text):
				case i > 0 && before[0] == '-' && len(before) > 1:
					return quoted(given) + " after " + quoted(before)
				default:
					return quoted(given)
				}
			}
		}
	}
	return ""
}

// option is the one of the command line that the message names: one that there is
// not, if unknown is asked for, else one whose value is wrong.
func (s *scene) option(unknown bool) (wrong string) {
	said := s.f.Line
	for line := range strings.Lines(s.content) {
		if !unknownOption.MatchString(said) && unknownOption.MatchString(line) {
			said = line
		}
	}
	if unknownOption.MatchString(said) != unknown || howCalled.MatchString(said) {
		return ""
	}
	plain, letter := "", ""
	if m := getopt.FindStringSubmatch(said); m != nil {
		letter = m[1]
	}
	for _, v := range s.parts {
		for _, w := range v.Words[1:] {
			flag, _, _ := strings.Cut(w, "=")
			bare := strings.TrimLeft(flag, "-")
			switch {
			case len(flag) > 1 && flag[0] == '-' && flag[1] != '-' && letter != "" && strings.Contains(flag, letter):
				wrong = flag
			case bare == "" || !hasWord(said, flag) && (len(bare) < 2 || !hasWord(said, bare)):
			case flag[0] == '-':
				wrong = flag
			case unknown && !strings.ContainsAny(w, "/.0123456789"):
				plain = w // a command of the program
			}
		}
	}
	return cmp.Or(wrong, plain)
}

// nearestOption is the option of the usage text that an unknown one was meant to be.
func (s *scene) nearestOption() string {
	wrong := s.option(true)
	var known []string
	for _, o := range options.FindAllString(s.content, 200) {
		if o != wrong && !slices.Contains(known, o) {
			known = append(known, o)
		}
	}
	return trajectory.Nearest(wrong, known)
}
