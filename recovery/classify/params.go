package classify

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// parameters finds the parameters that a refusal names: from the structure,
// then from the wording.
func parameters(v *view, class recovery.Class, f *recovery.Facts) {
	text := clip(v.text, maxSentence)
	f.UseInstead = instead(v, text)
	f.OfValue = class == recovery.UnsupportedParameter && v.refusesValue(text)
	plain := class == recovery.UnsupportedParameter || class == recovery.InvalidRequest
	switch class {
	case recovery.UnsupportedParameter, recovery.MaxOutputExceeded, recovery.InvalidRequest, recovery.InvalidToolSchema, recovery.ImageOrMediaError,
		recovery.ToolPairing, recovery.ContextLengthExceeded, recovery.PayloadTooLarge, recovery.ContentPolicy, recovery.ModelNotFound,
		recovery.InvalidJSONBody, recovery.ServerError, recovery.Permission:
	default:
		return
	}
	names := v.params
	if len(names) == 0 && plain {
		names = several(text)
	}
	switch names = v.distinct(names); {
	case len(names) > 1:
		f.Params = names
	case len(names) == 1:
		f.Param = names[0]
	case isParam(v.Param):
		f.Param = v.Param
	case plain:
		f.Param = v.spelt(named(text, class))
	case class == recovery.ContextLengthExceeded:
		// "input length and 'max_tokens' exceed context limit": the text names what
		// else helps.
		if says(text, "must be at least", "or 'max_tokens' and try again", "or max_tokens and try again", "input length and 'max_tokens' exceed", "input length and max_tokens exceed") {
			f.Param = v.spelt(firstKnown(text, outputNames))
		}
	case class == recovery.InvalidToolSchema:
		f.Param = v.spelt(toolPath(text))
	case class == recovery.ModelNotFound && strings.Contains(text, "support tool use"):
		f.Param = "tools"
	case class == recovery.MaxOutputExceeded:
		f.Param = v.outputParam(text)
	}
}

// fieldCodes are the codes of fields that a target does not know, as [rule.Code] has them.
var fieldCodes = []string{"unsupportedparameter", "unknownparameter", "extraforbidden", "unknownfield", "unsupportedfield", "unrecognizedparameter"}

// refusesValue reports whether a refusal is one of a value that a known field has,
// rather than of the field. One value that is the only one is no choice: then it is the field.
func (v *view) refusesValue(text string) bool {
	if slices.ContainsFunc(v.codes, func(c string) bool { return slices.Contains(fieldCodes, c) }) || says(text, "only the default") {
		return false
	}
	return slices.ContainsFunc(v.codes, func(c string) bool { return strings.Contains(c, "value") }) ||
		says(text, "invalid value", "unsupported value", "supported values", "allowed values", "valid values", "must be one of", "should be one of", "is not one of", "expected one of",
			"must be between", "should be between", "in range", "in the range", "less than", "greater than", "at most", "at least", "maximum value", "minimum value",
			"input should be", "is not a valid", "取值范围", "取值")
}

// distinct returns the names that are parameters, as the client spells them,
// each once: servers say the same in two places, and gateways twice.
func (v *view) distinct(names []string) []string {
	var out []string
	for _, n := range names {
		if !isParam(n) {
			continue
		}
		if n = v.spelt(plainPath(strings.TrimRight(n, "."))); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// outputParam is the parameter of the requested output that the text names.
func (v *view) outputParam(text string) string {
	if path := breachedPath(text, recovery.MaxOutputExceeded); path != "" {
		return v.spelt(path)
	}
	if name := firstKnown(text, outputNames); name != "" {
		return v.spelt(name)
	}
	return firstMeant(text, outputNames)
}

var paramName = recovery.NewPattern(`^[A-Za-z_][A-Za-z0-9_.$/'\[\]-]{0,119}$`)

// isParam tells the name of a field from a marker, a status or a sentence.
func isParam(s string) bool {
	switch strings.ToLower(s) {
	case "none", "null", "nil", "undefined", "unknown", "error", "parameter", "parameters", "params", "argument", "field":
		return false
	}
	return paramName.MatchString(s) && !strings.HasSuffix(s, "_error")
}

// Where texts name more than one field: each group is a name.
var severalPlaces = [...]*recovery.Pattern{
	recovery.NewPattern(`(?:unsupported|unknown|unrecognized|unexpected|invalid) (?:parameter|argument|field)(?:\(s\)|s):? '?(` + fieldName + `(?:'?(?:, and |, | and )'?` + fieldName + `)*)`),
	recovery.NewPattern(`property '(?:body\.)?(` + fieldName + `)'.{0,13}unsupported`),
	recovery.NewPattern(`(?:cannot (?:specify|set) both|only one of) '?(` + fieldName + `)'? (?:and|or) '?(` + fieldName + `)`),
	recovery.NewPattern(`(` + fieldName + `)'? and '?(` + fieldName + `)'?.{0,60}?(?:` +
		`cannot (?:both be|be both|be specified together|be used together)|can't both be|are mutually exclusive|不能同时)`),
}

// "#/tool_choice: extraneous key [x] is not permitted": where, and which.
var extraneous = recovery.NewPattern(`(?:#/([a-z0-9_/.$\[\]-]*): )?extraneous key \[([^\]]+)\]`)

// several returns the fields that a text names together.
func several(text string) []string {
	var out []string
	for _, p := range severalPlaces {
		for _, m := range p.FindAllStringSubmatch(text, 16) {
			for _, names := range m[1:] {
				out = append(out, strings.FieldsFunc(names, func(c rune) bool { return c == ',' || c == ' ' || c == '\'' })...)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	for _, m := range extraneous.FindAllStringSubmatch(text, 16) {
		out = append(out, strings.TrimPrefix(strings.ReplaceAll(m[1], "/", ".")+"."+m[2], "."))
	}
	return out
}

var pathType = recovery.NewPattern(`^(?:str|int|float|bool|dict|list|list\[.*|function-.*)$`)

// plainPath takes out of a path the steps that are not in the JSON: the role
// that names the variant of a message after its index, the body, and a type at the end.
func plainPath(path string) string {
	steps := strings.Split(strings.TrimPrefix(path, "body."), ".")
	message := steps[0] == "messages" || steps[0] == "input"
	out := steps[:1]
	for i, s := range steps[1:] {
		last := i+2 == len(steps)
		switch s {
		case "user", "assistant", "system", "tool", "function", "developer":
			if message && !last && allDigits(steps[i]) {
				continue
			}
		}
		if !last || !pathType.MatchString(s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ".")
}

// sure tells how much a place says about what stands there.
type sure uint8

const (
	fieldThere  sure = iota // whatever stands there is a field
	fieldLooks              // what looks like a field is one
	fieldKnown              // only a known one
	fieldValues             // a known one, before one of its values
)

// The places where sentences name the field that they are about, in the order in
// which they are tried.
var places = [...]struct {
	sure  sure
	place *recovery.Pattern
}{
	{fieldThere, recovery.NewPattern(`len\((` + fieldName + `)\)`)}, // "… but len(stop) = 10"
	{fieldThere, recovery.NewPattern(`(` + fieldName + `)'?: (?:extra inputs are not permitted|field required|input should be )`)},
	{fieldThere, recovery.NewPattern(`must be satisfied\[\('(` + fieldName + `)' : value`)}, // "('messages.0.content' : value must be a string)"
	{fieldThere, recovery.NewPattern(announced + apart + `'(?:body\.)?(` + fieldName + `)'`)},
	{fieldLooks, recovery.NewPattern(announced + apart + `(?:body\.)?(` + fieldName + `)`)},
	{fieldThere, recovery.NewPattern(`(?:not supported (?:on|by|for) this model|not supported|unsupported):[: (\[]*'?(` + fieldName + `)[ .']*$`)},
	{fieldThere, recovery.NewPattern(mentioned + apart + `'(?:body\.)?(` + fieldName + `)'`)},
	{fieldLooks, recovery.NewPattern(mentioned + apart + `(?:body\.)?(` + fieldName + `)`)},
	{fieldThere, recovery.NewPattern(`supports? (?:the |parameter |this parameter: )'?(` + fieldName + `)'? (?:parameter|field)`)},
	{fieldThere, recovery.NewPattern(`support parameter '?(` + fieldName + `)[ .]*$`)},
	{fieldLooks, recovery.NewPattern(`(?:not|doesn't) support '?(` + fieldName + `)`)},
	{fieldLooks, recovery.NewPattern(`(` + fieldName + `)'? parameter `)},
	{fieldLooks, recovery.NewPattern(` must have '?(` + fieldName + `)`)},
	{fieldLooks, recovery.NewPattern(`(` + fieldName + `)'? value of `)},
	{fieldThere, recovery.NewPattern(`expected '(thinking)'`)},                                     // the kind of block that a path leads to says more than the path
	{fieldThere, recovery.NewPattern(`into the target type: (` + fieldName + `):`)},                // serde
	{fieldThere, recovery.NewPattern(`^'(` + fieldName + `)'? ?:`)},                                // "'tools' : maximum number of items is 128"
	{fieldKnown, recovery.NewPattern(`(?:^|¦ |(?:errors?|exception): )'?(` + fieldName + `)'?: `)}, // "the following errors: tool_choice: type 'tool' …"
	{fieldThere, recovery.NewPattern(`^(` + fieldName + `): (?:[^h]|h[^t])`)},                      // "x: …", but no prefix of a proxy
	{fieldValues, recovery.NewPattern(`(` + fieldName + `) '[a-z0-9_.]+` + refusedVerb)},           // "response_format 'json_object' cannot …"
	{fieldThere, recovery.NewPattern(`(?:^|[^/a-z0-9_.$\[\]-])(` + fieldName + `)` + refusedVerb)},
	{fieldThere, recovery.NewPattern(`(` + fieldName + `): unknown variant`)},
	{fieldLooks, recovery.NewPattern(`(` + fieldName + `) is not supported (?:with|on|by) this model`)},
	{fieldKnown, recovery.NewPattern(`(?:^|[^a-z0-9_.'])(` + fieldName + `) (?:is|are) currently not supported`)},
}

// The name of a field in folded text, and what goes before and after it in refusals.
const (
	fieldName = `[a-z][a-z0-9_.$\[\]-]*`
	announced = `(?:unsupported param(?:eter)?|unknown (?:parameter|field|name|argument)|unrecognized request arguments? supplied|` +
		`unrecognized (?:parameter|field|key\(s\) in object)|unsupported (?:value|field|option)|unexpected keyword argument|` +
		`invalid parameter|invalid value (?:for|of|at)|invalid type for|missing required parameter|required parameter|missing field|supports? (?:the|this)|` +
		`not supported (?:on|by|for) this model:|not supported:|unsupported:)`
	apart       = `(?:s?\b|[: (\[{])[: (\[{]*`
	mentioned   = `(?:parameter|argument|property|field|for the|invalid|参数)`
	refusedVerb = `' (?:(?:field|parameter|array) )?(?:is not|does not|is unsupported|is deprecated|must|cannot|are not|may only)`
)

// named finds the field that a sentence is about.
func named(text string, class recovery.Class) string {
	if name := limitedField(text); name != "" {
		return name
	}
	if path := breachedPath(text, class); isParam(path) {
		return plainPath(path)
	}
	for _, p := range places {
		for _, m := range p.place.FindAllStringSubmatch(text, 4) {
			if name := strings.TrimRight(m[1], "."); fits(name, p.sure) {
				return plainPath(name)
			}
		}
	}
	if name := firstMeant(text, knownNames); name != "" || class != recovery.UnsupportedParameter {
		return name
	}
	for _, t := range topics {
		if says(text, t.words...) {
			return t.name
		}
	}
	return ""
}

// fits reports that a name that stands at a place is a field.
func fits(name string, s sure) bool {
	if !isParam(name) || name == "status_code" || len(name) < 2 && name != "n" || says(name, "error", "exception") {
		return false
	}
	switch s {
	case fieldKnown, fieldValues:
		return isKnown(name) || isOutputName(name)
	case fieldLooks:
		return isKnown(name) || isOutputName(name) || strings.ContainsAny(name, "_.[")
	}
	return true
}

// topics are the fields that texts speak of without their names.
var topics = [...]struct {
	name  string
	words []string
}{
	{"stop", []string{"stop strings", "stop words"}},
	{"response_format", []string{"json output", "json mode", "json schema", "structured output", "response format"}},
	{"reasoning_effort", []string{"low, medium", "'low', 'medium'"}},
	{"role", []string{"role", "system message", "developer instruction"}},
	{"tool_choice", []string{"tool choice"}},
	{"tools", []string{"tool", "function call"}},
	{"stream", []string{"stream"}},
}

// "Use 'max_completion_tokens' instead.", "Did you mean 'tools'?"
var replacement = recovery.NewPattern(`(?:(?:use|use the|try) '(` + fieldName + `)'(?: parameter)? instead|did you mean '(` + fieldName + `))`)

// instead reads the replacement that a refusal names.
func instead(v *view, text string) string {
	if m := replacement.FindStringSubmatch(text); m != nil && isParam(m[1]+m[2]) {
		return v.spelt(strings.TrimRight(m[1]+m[2], "."))
	}
	return ""
}

// spelt gives a folded name its original case back. A capital at its beginning
// is one of a sentence.
func (v *view) spelt(name string) string {
	if name == "" {
		return ""
	}
	spelling := regexp.MustCompile(regexp.QuoteMeta(name[:1]) + "(?i)" + regexp.QuoteMeta(name[1:]))
	for _, t := range v.texts {
		if s := spelling.FindString(t); s != "" {
			return s
		}
	}
	if strings.Contains(name, ".") && !strings.Contains(name, "/") { // the path may have been a JSON pointer
		return strings.ReplaceAll(v.spelt(strings.ReplaceAll(name, ".", "/")), "/", ".")
	}
	return name
}
