package classify

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
)

// parameters finds the parameters that a refusal names: from the structure,
// then from the wording.
func parameters(v *view, class recovery.Class, f *recovery.Facts) {
	f.UseInstead = instead(v)
	switch class {
	case recovery.UnsupportedParameter, recovery.MaxOutputExceeded, recovery.InvalidRequest, recovery.InvalidToolSchema, recovery.ImageOrMediaError,
		recovery.ToolPairing,
		recovery.ContextLengthExceeded, recovery.PayloadTooLarge, recovery.ContentPolicy, recovery.ModelNotFound, recovery.InvalidJSONBody,
		recovery.ServerError, recovery.Permission:
	default:
		return
	}
	names := v.params
	if class == recovery.UnsupportedParameter || class == recovery.InvalidRequest {
		if len(names) == 0 {
			names = listed(v.text)
		}
		if len(names) == 0 {
			names = pair(v.text)
		}
		if len(names) == 0 {
			names = extraneous(v.text)
		}
	}
	switch names = v.distinct(names); {
	case len(names) > 1:
		f.Params = names
		return
	case len(names) == 1:
		f.Param = names[0]
		return
	}
	if isParam(v.Param) {
		f.Param = v.Param
		return
	}
	switch class {
	case recovery.UnsupportedParameter, recovery.InvalidRequest:
		f.Param = v.spelt(named(v.text, class))
	case recovery.ContextLengthExceeded:
		// "input length and 'max_tokens' exceed context limit": the text names what
		// else helps.
		if says(v.text, "or 'max_tokens' and try again", "or max_tokens and try again", "input length and 'max_tokens' exceed", "input length and max_tokens exceed") {
			f.Param = "max_tokens"
		}
	case recovery.InvalidToolSchema:
		if name := toolPath(v.text); name != "" {
			f.Param = v.spelt(name)
		}
	case recovery.ModelNotFound:
		if strings.Contains(v.text, "support tool use") {
			f.Param = "tools"
		}
	case recovery.MaxOutputExceeded:
		f.Param = v.outputParam()
	}
}

// distinct returns the names that are parameters, as the client spells them,
// each once: servers say the same in two places, and gateways twice.
func (v *view) distinct(names []string) []string {
	var out []string
	for _, n := range names {
		if !isParam(n) {
			continue
		}
		if n = v.spelt(plainPath(n)); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// outputParam is the parameter of the requested output that the text names.
func (v *view) outputParam() string {
	if path := breachedPath(v.text, recovery.MaxOutputExceeded); path != "" {
		return v.spelt(path)
	}
	if name := firstKnown(v.text, outputNames[:]); name != "" {
		return v.spelt(name)
	}
	return spaced(v.text, outputNames[:])
}

// isParam tells the name of a field from a marker, a status or a sentence.
func isParam(s string) bool {
	if s == "" || len(s) > 120 || strings.HasSuffix(s, "_error") || !isWord(s[0]|0x20) || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.[]-'/$", c) >= 0) {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "none", "null", "nil", "undefined", "unknown", "error", "parameter", "parameters", "params", "argument", "field":
		return false
	}
	return true
}

// listed reads lists like "body.min_p: property 'body.min_p' is unsupported".
func listed(text string) []string {
	var out []string
	for rest := text; len(out) < 16; {
		i := strings.Index(rest, "property '")
		if i < 0 {
			break
		}
		rest = rest[i+len("property '"):]
		name, after, ok := strings.Cut(rest, "'")
		if !ok {
			break
		}
		rest = after
		if name = strings.TrimPrefix(name, "body."); isParam(name) && strings.Contains(after[:min(len(after), 24)], "unsupported") {
			out = append(out, name)
		}
	}
	return out
}

// extraneous reads "#/tool_choice: extraneous key [x] is not permitted".
func extraneous(text string) []string {
	const words = "extraneous key ["
	var out []string
	for from := 0; len(out) < 16; {
		i := strings.Index(text[from:], words)
		if i < 0 {
			break
		}
		path, at := "", from+i
		if j := strings.LastIndexByte(text[from:at], '#'); j >= 0 {
			path = strings.Trim(text[from+j+1:at], "/: ")
		}
		from = at + len(words)
		name, _, ok := strings.Cut(text[from:], "]")
		if !ok || !isParam(name) {
			break
		}
		if isParam(path) {
			name = strings.ReplaceAll(path, "/", ".") + "." + name
		}
		out = append(out, name)
	}
	return out
}

// pair reads "'temperature' and 'top_p' cannot both be specified".
func pair(text string) []string {
	for _, words := range []string{"cannot specify both ", "cannot set both ", "only one of "} {
		if _, rest, ok := strings.Cut(text, words); ok {
			if a := firstName(rest); isParam(a) {
				rest = strings.TrimPrefix(strings.TrimLeft(rest, " '")[len(a):], "'")
				for _, joint := range []string{" and ", " or "} {
					if b, ok := strings.CutPrefix(rest, joint); ok && isParam(firstName(b)) {
						return []string{a, firstName(b)}
					}
				}
			}
		}
	}
	for _, words := range []string{"cannot both be", "cannot be both", "cannot be specified together", "cannot be used together", "can't both be",
		"are mutually exclusive", "不能同时"} {
		head, _, ok := strings.Cut(text, words)
		if !ok {
			continue
		}
		left, right, ok := strings.Cut(tail(head, 100), " and ")
		if !ok {
			continue
		}
		a, b := lastName(left), firstName(right)
		if isParam(a) && isParam(b) {
			return []string{a, b}
		}
	}
	return nil
}

// plainPath takes out of a path the steps that are not in the JSON: the role
// that names the variant of a message after its index, and a type at the end.
func plainPath(path string) string {
	steps := strings.Split(path, ".")
	message := steps[0] == "messages" || steps[0] == "input"
	out := steps[:0]
	for i, s := range steps {
		if message && i > 0 && i < len(steps)-1 && allDigits(steps[i-1]) && isRole(s) {
			continue
		}
		if i > 0 && i == len(steps)-1 && (s == "str" || s == "int" || s == "float" || s == "bool" || s == "dict" || s == "list" || strings.HasPrefix(s,
			"list[") || strings.HasPrefix(s, "function-")) {
			continue
		}
		out = append(out, s)
	}
	return strings.Join(out, ".")
}

func isRole(s string) bool {
	switch s {
	case "user", "assistant", "system", "tool", "function", "developer":
		return true
	}
	return false
}

func firstName(s string) string {
	s = strings.TrimLeft(s, " '")
	return strings.TrimRight(s[:nameLen(s)], ".'")
}

func lastName(s string) string {
	s = strings.TrimRight(s, " '")
	i := len(s)
	for i > 0 && nameByte(s[i-1]) {
		i--
	}
	return s[i:]
}

func nameLen(s string) int {
	n := 0
	for n < len(s) && nameByte(s[n]) {
		n++
	}
	return n
}

func nameByte(c byte) bool {
	return isWord(c) || c == '.' || c == '[' || c == ']' || c == '-' || c == '$'
}

// named finds the field that a sentence is about.
func named(text string, class recovery.Class) string {
	if name := limitedField(text); name != "" {
		return name
	}
	if path := breachedPath(text, class); isParam(path) {
		return plainPath(path)
	}
	if name := measured(text); name != "" {
		return name
	}
	if name := spotted(text, spotsBefore()); name != "" {
		return plainPath(name)
	}
	// "unknown field 'x'", "Unsupported parameter: 'x'", "unrecognized request argument supplied: x"
	for _, lead := range []string{
		"unsupported parameter", "unknown parameter", "unrecognized request argument supplied", "unrecognized request arguments supplied",
		"unrecognized parameter", "unknown field", "unknown name", "unsupported value", "unexpected keyword argument", "invalid parameter",
		"invalid value for", "unrecognized key(s) in object", "unrecognized field", "unsupported param",
		"unsupported field", "unsupported option", "missing required parameter", "required parameter", "missing field", "support the", "support this",
		"not supported on this model:", "not supported by this model:", "not supported for this model:", "not supported:", "unsupported:",
		"supports the", "unknown argument", "the parameter", "parameter", "argument", "property", "field", "for the", "invalid", "参数",
	} {
		for from, tries := 0, 0; tries < 4; tries++ {
			i := strings.Index(text[from:], lead)
			if i < 0 {
				break
			}
			from += i + len(lead)
			rest := strings.TrimLeft(text[from:], "s: ([")
			quoted := strings.HasPrefix(rest, "'")
			name := firstName(rest)
			last := strings.HasSuffix(lead, ":") && strings.Trim(rest[len(name):], " .'") == ""
			if name = strings.TrimPrefix(name, "body."); isParam(name) && (quoted || last || strings.ContainsAny(name,
				"_.[") || isKnown(name)) && !strings.HasSuffix(name, "error") {
				return name
			}
		}
	}
	if name := spotted(text, spotsAfter()); name != "" {
		return name
	}
	// "'x' is not supported", "x: Extra inputs are not permitted"
	if i := strings.IndexByte(text, ':'); i > 0 && i < 80 {
		if name := text[:i]; isParam(name) && nameLen(name) == len(name) && name != "status_code" && !strings.HasPrefix(text[i:], ": http ") && !strings.Contains(name, "error") && !strings.Contains(name, "exception") {
			return name
		}
	}
	for _, verb := range []string{"' is not", "' does not", "' is unsupported", "' is deprecated", "' must", "' cannot", "' are not", "' may only",
		": unknown variant", " is not supported with this model", " is not supported on this model", " is not supported by this model"} {
		if i := strings.Index(text, verb); i > 0 {
			name := lastName(text[:i])
			// "response_format 'json_object' cannot": a value, after its field.
			if field := lastName(strings.TrimSuffix(text[:i], name)); isKnown(field) && !isKnown(field+"_"+name) {
				return field
			}
			if isParam(name) && len(name) > 1 && !strings.HasSuffix(text[:i], "/"+name) && (verb[0] == '\'' || verb[0] == ':' || strings.Contains(name,
				"_") || isKnown(name)) {
				return name
			}
		}
	}
	if name := firstMeant(text); name != "" {
		return name
	}
	if class == recovery.UnsupportedParameter {
		switch {
		case says(text, "json output", "json mode", "json schema", "structured output", "response format"):
			return "response_format"
		case says(text, "low, medium", "'low', 'medium'"):
			return "reasoning_effort"
		case says(text, "role"), says(text, "system message", "developer instruction"):
			return "role"
		case says(text, "tool choice"):
			return "tool_choice"
		case says(text, "tool", "function call"):
			return "tools"
		case says(text, "stream"):
			return "stream"
		}
	}
	return ""
}

// spot is a place in folded text where the name of a field stands: the group of
// the expression.
type spot struct {
	place *regexp.Regexp
	sure  bool // whatever stands there is a field; otherwise only what looks like one
}

func newSpots(sure bool, places ...string) []spot {
	var out []spot
	for _, p := range places {
		out = append(out, spot{regexp.MustCompile(strings.ReplaceAll(p, "NAME", `([a-z][a-z0-9_.\[\]$-]*)`)), sure})
	}
	return out
}

// The spots are tried in their order. Some are told before the words that
// announce a name, and the rest after them.
var (
	spotsBefore = sync.OnceValue(func() []spot {
		return newSpots(true,
			`NAME'?: (?:extra inputs are not permitted|field required|input should be )`,
			`must be satisfied\[\('NAME' : value`) // "('messages.0.content' : value must be a string)"
	})
	spotsAfter = sync.OnceValue(func() []spot {
		return slices.Concat(
			newSpots(true, `supports? (?:the |parameter |this parameter: )'?NAME'? (?:parameter|field)`, `support parameter '?NAME[ .]*$`),
			newSpots(false, `not support '?NAME`, `doesn't support '?NAME`, `NAME'? parameter `, ` must have '?NAME`, `NAME'? value of `),
			// The kind of block that a path leads to says more than the path; serde;
			// "'tools' : maximum number of items is 128".
			newSpots(true, `expected '(thinking)'`, `into the target type: NAME:`, `^'NAME'? ?:`))
	})
)

// spotted returns the first name that stands at one of the spots, or "".
func spotted(text string, spots []spot) string {
	for _, s := range spots {
		if m := s.place.FindStringSubmatch(text); m != nil {
			name := strings.TrimRight(m[1], ".")
			if isParam(name) && (s.sure || isKnown(name) || isOutputName(name) || strings.Contains(name, "_")) {
				return name
			}
		}
	}
	return ""
}

// instead reads the replacement that a refusal names.
func instead(v *view) string {
	for _, lead := range []string{"use '", "use the '", "try '", "did you mean '", "please use '"} {
		if i := strings.Index(v.text, lead); i >= 0 {
			rest := v.text[i+len(lead):]
			name := firstName(rest)
			after := rest[min(len(rest), len(name)):]
			if isParam(name) && (strings.HasPrefix(after, "' instead") || strings.HasPrefix(after, "' parameter instead") || strings.HasPrefix(lead,
				"did")) {
				return v.spelt(name)
			}
		}
	}
	return ""
}

// spelt gives a folded name its original case back.
func (v *view) spelt(name string) string {
	if name == "" {
		return ""
	}
	for _, t := range v.texts {
		if i := indexFold(t, name); i >= 0 && i+len(name) <= len(t) {
			return t[i : i+len(name)]
		}
	}
	if strings.Contains(name, ".") && !strings.Contains(name, "/") { // the path may have been a JSON pointer
		return strings.ReplaceAll(v.spelt(strings.ReplaceAll(name, ".", "/")), "/", ".")
	}
	return name
}

// place compiles an expression for a place in folded text where the name of a
// field stands.
func place(expr string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(expr, "NAME", `[a-z][a-z0-9_.$\[\]-]*`))
}
