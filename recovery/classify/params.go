package classify

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// parameters sets the facts about the parameters that a refusal names: from fields
// of the body first, then from the text.
func parameters(v *view, class recovery.Class, f *recovery.Facts) {
	text := clip(v.text, maxSentence)
	f.UseInstead = namedReplacement(v, text)
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
		names = namedTogether(text)
	}
	switch names = v.distinct(names); {
	case len(names) > 1:
		f.Params = names
	case len(names) == 1:
		f.Param = names[0]
	case isParam(v.Param):
		f.Param = v.Param
	case plain:
		f.Param = v.originalCase(namedField(text, class))
	case class == recovery.ContextLengthExceeded:
		// "input length and 'max_tokens' exceed context limit": a smaller output limit helps too.
		if says(text, "must be at least", "or 'max_tokens' and try again", "or max_tokens and try again", "input length and 'max_tokens' exceed", "input length and max_tokens exceed") {
			f.Param = v.originalCase(firstKnown(text, outputNames))
		}
	case class == recovery.InvalidToolSchema:
		f.Param = v.originalCase(toolPath(text))
	case class == recovery.ModelNotFound && strings.Contains(text, "support tool use"):
		f.Param = "tools"
	case class == recovery.MaxOutputExceeded:
		f.Param = v.outputParam(text)
	}
}

// fieldCodes are the error codes for unknown fields, in the form of [rule.Code].
var fieldCodes = []string{"unsupportedparameter", "unknownparameter", "extraforbidden", "unknownfield", "unsupportedfield", "unrecognizedparameter"}

// refusesValue reports whether the target knows the field and refuses only its value.
// If the field takes a single value, the field counts as refused.
func (v *view) refusesValue(text string) bool {
	if slices.ContainsFunc(v.codes, func(c string) bool { return slices.Contains(fieldCodes, c) }) || says(text, "only the default") {
		return false
	}
	return slices.ContainsFunc(v.codes, func(c string) bool { return strings.Contains(c, "value") }) ||
		says(text, "invalid value", "unsupported value", "supported values", "allowed values", "valid values", "must be one of", "should be one of", "is not one of", "expected one of",
			"must be between", "should be between", "in range", "in the range", "less than", "greater than", "at most", "at least", "maximum value", "minimum value",
			"input should be", "is not a valid", "of the expected tags", "adaptive thinking", "取值范围", "取值")
}

// distinct returns the parameter names among names, each once and in the spelling
// of the texts. Servers and gateways repeat names.
func (v *view) distinct(names []string) []string {
	var out []string
	for _, n := range names {
		if !isParam(n) {
			continue
		}
		if n = v.originalCase(plainPath(strings.TrimRight(n, "."))); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// outputParam returns the output limit's parameter that the text names, or "".
func (v *view) outputParam(text string) string {
	if path := violatedPath(text, recovery.MaxOutputExceeded); path != "" {
		return v.originalCase(path)
	}
	if name := firstKnown(text, outputNames); name != "" {
		return v.originalCase(name)
	}
	return firstMentioned(text, outputNames)
}

var paramName = recovery.NewPattern(`^[A-Za-z_][A-Za-z0-9_.$/'\[\]-]{0,119}$`)

// isParam reports whether s can be a field name and is no placeholder, status or sentence.
func isParam(s string) bool {
	switch strings.ToLower(s) {
	case "none", "null", "nil", "undefined", "unknown", "error", "parameter", "parameters", "params", "argument", "field", "validation":
		return false
	}
	return paramName.MatchString(s) && !strings.HasSuffix(s, "_error")
}

// Texts that name more than one field. A group captures one name or a list of names.
var togetherPatterns = [...]*recovery.Pattern{
	recovery.NewPattern(`(?:unsupported|unknown|unrecognized|unexpected|invalid) (?:request )?(?:parameter|argument|field)(?:\(s\)|s)(?: supplied)?:? '?(` + fieldName + `(?:'?(?:, and |, | and )'?` + fieldName + `)*)`),
	recovery.NewPattern(`body -> (` + fieldName + `)\s+extra inputs are not permitted`),
	recovery.NewPattern(`property '(?:body\.)?(` + fieldName + `)'.{0,13}unsupported`),
	recovery.NewPattern(`(?:cannot (?:specify|set) both|only one of) '?(` + fieldName + `)'? (?:and|or) '?(` + fieldName + `)`),
	recovery.NewPattern(`(` + fieldName + `)'? and '?(` + fieldName + `)'?.{0,60}?(?:` +
		`cannot (?:both be|be both|be specified together|be used together)|can't both be|are mutually exclusive|不能同时)`),
}

// "#/tool_choice: extraneous key [x] is not permitted": the parent's path and the key.
var extraneous = recovery.NewPattern(`(?:#/([a-z0-9_/.$\[\]-]*): )?extraneous key \[([^\]]+)\]`)

// namedTogether returns the fields that a text refuses together.
func namedTogether(text string) []string {
	var out []string
	for _, p := range togetherPatterns {
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

// plainPath removes steps that are not in the request's JSON: a leading "body", a
// role after a message's index (the validator's variant), and a type at the end.
func plainPath(path string) string {
	steps := strings.Split(strings.TrimPrefix(path, "body."), ".")
	message := steps[0] == "messages" || steps[0] == "input"
	out := steps[:1]
	for i, s := range steps[1:] {
		last := i+2 == len(steps)
		switch s {
		case "user", "assistant", "system", "tool", "function", "developer", "typed-dict":
			if message && !last && allDigits(steps[i]) {
				continue
			}
		}
		if message && !last && strings.HasPrefix(strings.ToLower(s), "chatcompletion") { // the validator's class
			continue
		}
		if !last || !pathType.MatchString(s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ".")
}

// certainty says how reliably a pattern captures a field name.
type certainty uint8

const (
	anyField    certainty = iota // any name is a field
	likelyField                  // a known name or one with _ . or [
	knownField                   // only a known name
)

// fieldPatterns find the field that a sentence is about. They are tried in this order.
var fieldPatterns = [...]struct {
	certainty certainty
	pattern   *recovery.Pattern
}{
	{anyField, recovery.NewPattern(`len\((` + fieldName + `)\)`)}, // "… but len(stop) = 10"
	{anyField, recovery.NewPattern(`not permitted, field: '(` + fieldName + `)'`)},
	{anyField, recovery.NewPattern(`(` + fieldName + `)'?: (?:extra inputs are not permitted|field required|input should be )`)},
	{anyField, recovery.NewPattern(`must be satisfied\[\('(` + fieldName + `)' : value`)}, // "('messages.0.content' : value must be a string)"
	{anyField, recovery.NewPattern(refusalWords + separator + `'(?:body\.)?(` + fieldName + `)'`)},
	{likelyField, recovery.NewPattern(refusalWords + separator + `(?:body\.)?(` + fieldName + `)`)},
	{anyField, recovery.NewPattern(`(?:not supported (?:on|by|for) this model|not supported|unsupported):[: (\[]*'?(` + fieldName + `)[ .']*$`)},
	{anyField, recovery.NewPattern(fieldWords + separator + `'(?:body\.)?(` + fieldName + `)'`)},
	{likelyField, recovery.NewPattern(fieldWords + separator + `(?:body\.)?(` + fieldName + `)`)},
	{anyField, recovery.NewPattern(`supports? (?:the |parameter |this parameter: )'?(` + fieldName + `)'? (?:parameter|field)`)},
	{anyField, recovery.NewPattern(`support parameter '?(` + fieldName + `)[ .]*$`)},
	{likelyField, recovery.NewPattern(`(?:not|doesn't) support '?(` + fieldName + `)`)},
	{likelyField, recovery.NewPattern(`(` + fieldName + `)'? parameter `)},
	{likelyField, recovery.NewPattern(` must have '?(` + fieldName + `)`)},
	{likelyField, recovery.NewPattern(`(` + fieldName + `)'? value of `)},
	{anyField, recovery.NewPattern(`expected '(thinking)'`)},                                       // the block's type is more useful than its path
	{anyField, recovery.NewPattern(`into the target type: (` + fieldName + `):`)},                  // serde
	{anyField, recovery.NewPattern(`^'(` + fieldName + `)'? ?:`)},                                  // "'tools' : maximum number of items is 128"
	{knownField, recovery.NewPattern(`(?:^|¦ |(?:errors?|exception): )'?(` + fieldName + `)'?: `)}, // "the following errors: tool_choice: type 'tool' …"
	{anyField, recovery.NewPattern(`^(` + fieldName + `): (?:[^h]|h[^t])`)},                        // "x: …", but not before a URL
	{knownField, recovery.NewPattern(`(` + fieldName + `) '[a-z0-9_.]+` + refusedVerb)},            // "response_format 'json_object' cannot …"
	{anyField, recovery.NewPattern(`(?:^|[^/a-z0-9_.$\[\]-])(` + fieldName + `)` + refusedVerb)},
}

// Parts of fieldPatterns: a folded field name, and the words around it in refusals.
const (
	fieldName    = `[a-z][a-z0-9_.$\[\]-]*`
	refusalWords = `(?:unsupported param(?:eter)?|unknown (?:parameter|field|name|argument)|unrecognized request arguments? supplied|` +
		`unrecognized (?:parameter|field|key\(s\) in object)|unsupported (?:value|field|option)|unexpected keyword argument|` +
		`invalid parameter|invalid value (?:for|of|at)|invalid type for|missing required parameter|required parameter|missing field|supports? (?:the|this)|` +
		`not supported (?:on|by|for) this model:|not supported:|unsupported:)`
	separator   = `(?:s?\b|[: (\[{])[: (\[{]*`
	fieldWords  = `(?:parameter|argument|property|field|for the|invalid|参数)`
	refusedVerb = `' (?:(?:field|parameter|array) )?(?:is not|does not|is unsupported|is deprecated|must|cannot|are not|may only)`
)

// namedField returns the field that the text is about, or "".
func namedField(text string, class recovery.Class) string {
	if name := restrictedField(text); name != "" {
		return name
	}
	if path := violatedPath(text, class); isParam(path) {
		return plainPath(path)
	}
	for _, p := range fieldPatterns {
		for _, m := range p.pattern.FindAllStringSubmatch(text, 4) {
			if name := strings.TrimRight(m[1], "."); acceptsField(name, p.certainty) {
				return plainPath(name)
			}
		}
	}
	if name := firstMentioned(text, knownNames); name != "" || class != recovery.UnsupportedParameter {
		return name
	}
	for _, t := range topics {
		if says(text, t.words...) {
			return t.name
		}
	}
	return ""
}

// acceptsField reports whether a captured name is a field, given the pattern's certainty.
func acceptsField(name string, s certainty) bool {
	if !isParam(name) || name == "status_code" || len(name) < 2 && name != "n" || says(name, "error", "exception") {
		return false
	}
	switch s {
	case knownField:
		return isKnown(name) || isOutputName(name)
	case likelyField:
		return isKnown(name) || isOutputName(name) || strings.ContainsAny(name, "_.[")
	}
	return true
}

// topics are words that texts use for a field instead of its name.
var topics = [...]struct {
	name  string
	words []string
}{
	{"response_format", []string{"json output", "json mode", "json schema", "structured output", "response format"}},
	{"reasoning_effort", []string{"low, medium", "'low', 'medium'"}},
	{"role", []string{"role", "system message", "developer instruction"}},
	{"tools", []string{"tool", "function call"}},
	{"stream", []string{"stream"}},
}

// "Use 'max_completion_tokens' instead.", "Did you mean 'tools'?"
var replacement = recovery.NewPattern(`(?:(?:use|use the|try) '(` + fieldName + `)'(?: parameter)? instead|did you mean '(` + fieldName + `))`)

// namedReplacement returns the field that a refusal suggests instead, or "".
func namedReplacement(v *view, text string) string {
	if m := replacement.FindStringSubmatch(text); m != nil && isParam(m[1]+m[2]) {
		return v.originalCase(strings.TrimRight(m[1]+m[2], "."))
	}
	return ""
}

// originalCase returns a folded name in the case of the texts, except for its first
// letter: a capital there may only start a sentence.
func (v *view) originalCase(name string) string {
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
		return strings.ReplaceAll(v.originalCase(strings.ReplaceAll(name, ".", "/")), "/", ".")
	}
	return name
}
