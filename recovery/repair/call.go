package repair

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// argumentMender validates and repairs the arguments of one call of a known tool.
type argumentMender struct {
	mender   *Mender
	tool     *transcript.Tool
	schema   *schema
	canClose bool // missing brackets may be closed
	workLeft *int // of the whole answer, see maxAnswerWork

	rules      []string
	problem    string // the last problem, in words for the model
	unchecked  bool   // too large to validate
	overBudget bool   // the answer's bounds are used up: no repairs
}

// guarded reports whether only lossless steps are allowed. It is computed on demand,
// because most arguments are valid.
func (a *argumentMender) guarded() bool { return a.mender.guarded(a.tool) }

// valid reports whether the schema accepts text, unchanged. Without a schema any object
// passes; so does text that cannot be checked within the bounds, which sets unchecked.
func (a *argumentMender) valid(text string) bool {
	if a.schema.certainlyAccepts(text) {
		return true
	}
	if err := transcript.Valid([]byte(text), maxDepth); err != nil {
		a.problem = err.Error()
		return false
	}
	if strings.TrimLeft(text, " \t\r\n")[0] != '{' {
		a.problem = "they are not a JSON object"
		return false
	}
	if a.schema.compiled == nil {
		return true
	}
	return a.acceptsDecoded(decode(strings.NewReader(text)))
}

func (a *argumentMender) acceptsDecoded(v any) bool {
	var failure *jsonschema.ValidationError
	if failure, a.unchecked = a.schema.check(v, a.workLeft); failure != nil {
		a.problem = explain(failure)
		return false
	}
	return true
}

// acceptsValue reports whether the schema accepts a repaired value. A value that could
// not be checked within the bounds is refused, unless there is no schema.
func (a *argumentMender) acceptsValue(v *value) bool {
	if v.kind != kindObject {
		a.problem = "they are not a JSON object"
		return false
	}
	return a.schema.compiled == nil || a.acceptsDecoded(v.decoded()) && !a.unchecked
}

// mend returns valid arguments. If they were valid before, they are unchanged and rules
// is empty. If they cannot be repaired, ok is false and problem says why.
func (a *argumentMender) mend(text string) (out string, ok bool) {
	if len(text) > maxArguments || a.overBudget {
		a.unchecked = true
		a.problem = "they are too long to be mended"
		return text, transcript.Valid([]byte(text), 10_000) == nil // as deep as common JSON readers go
	}
	if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed == "null" || trimmed == `""` {
		return a.empty()
	}
	if a.valid(text) {
		return text, true
	}
	problem := a.problem
	if out, ok = a.unwrap(text); ok {
		return out, true
	}
	if a.guarded() {
		if v, _, err := readTolerant(out, false); err == nil && complete(out) {
			if out, ok = a.coerce(v, true); ok {
				return out, true
			}
		}
	} else if out, ok = a.mendTolerant(out); ok {
		return out, true
	}
	// The problem that a later step found is kept only if it is closer to the cause.
	if a.problem == "" || a.guarded() {
		a.problem = problem
	}
	a.rules = nil
	a.problem += a.unknownMembers(text)
	return text, false
}

// unknownMembers lists the members that the schema does not declare, for the problem:
// usually the model meant one that it declares.
func (a *argumentMender) unknownMembers(text string) string {
	properties := propertiesOf(a.schema.doc)
	v, _, err := readTolerant(text, false)
	if err != nil || len(properties) == 0 {
		return ""
	}
	var unknown []string
	for _, m := range v.members {
		if _, ok := properties[m.name]; !ok {
			unknown = append(unknown, m.name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return "; there is no parameter " + quoteList(unknown)
}

// empty turns missing arguments into an empty object, if the schema accepts that. A guarded
// tool must not declare any parameters: its arguments may have been lost.
func (a *argumentMender) empty() (string, bool) {
	object := &value{kind: kindObject}
	if !a.canClose {
		a.problem = "they are empty"
		return "", false
	}
	if a.guarded() && (a.schema.doc == nil || len(propertiesOf(a.schema.doc)) > 0) || !a.acceptsValue(object) {
		if a.problem == "" {
			a.problem = "they are empty"
		}
		return "", false
	}
	a.rules = append(a.rules, ruleEmpty)
	return "{}", true
}

// unwrap removes layers until the value inside validates. If none does, it returns
// the innermost value and false.
func (a *argumentMender) unwrap(text string) (out string, ok bool) {
	for range maxUnwraps {
		if v := a.fromTags(strings.TrimSpace(text)); v != nil && a.acceptsValue(v) {
			a.addRules(ruleParameters)
			return v.render(), true
		}
		inner, rule := peelLayer(text)
		if rule == "" {
			break
		}
		text = strings.TrimSpace(inner)
		a.addRules(rule)
		if text != "" && a.valid(text) {
			return text, true
		}
	}
	v, rules, err := readTolerant(text, false)
	if err != nil || len(rules) > 0 {
		if v = repeatedValue(text); v != nil && !a.guarded() && a.acceptsValue(v) {
			a.addRules(ruleRepeated)
			return v.render(), true
		}
		return text, false
	}
	for range maxUnwraps {
		inner := unwrapObject(v, a.tool.Name, a.schema.doc)
		if inner == nil {
			break
		}
		v = inner
		a.addRules(ruleWrapper)
		if a.acceptsValue(v) {
			return v.render(), true
		}
		text = v.render()
	}
	return text, false
}

// fromTags reads arguments written as one tag for each parameter, or as a whole call
// in Python syntax.
func (a *argumentMender) fromTags(text string) *value {
	c := cursor{in: text}
	if !strings.HasPrefix(text, "<") {
		calls, ok := c.pythonCalls()
		if !ok || len(calls) != 1 || stripName(calls[0].name) != a.tool.Name || !c.atEnd() {
			return nil
		}
		v, _, _ := readTolerant(calls[0].args, false)
		return v
	}
	params, ok := c.parameters()
	c.skipSpace()
	if !ok || len(params) == 0 || c.i < len(text) {
		return nil
	}
	return objectFromParams(params, a.schema.doc, a.workLeft)
}

func (a *argumentMender) addRules(rules ...string) {
	for _, rule := range rules {
		if !slices.Contains(a.rules, rule) {
			a.rules = append(a.rules, rule)
		}
	}
}

// mendTolerant parses unwrapped text tolerantly and coerces the value to the schema.
func (a *argumentMender) mendTolerant(text string) (out string, ok bool) {
	v, rules, err := a.readBroken(text)
	if err != nil {
		a.problem = "they are not valid JSON: " + err.Error()
		return text, false
	}
	if v.kind == kindString { // JSON in a string with other quotes than JSON's
		inner, more, err := readTolerant(v.str(), false)
		if err != nil {
			return text, false
		}
		v, rules = inner, append(append(rules, ruleEncoded), more...)
	}
	a.addRules(rules...)
	if v.kind == kindArray && len(v.items) == 1 && v.items[0].kind == kindObject {
		v = v.items[0]
		a.addRules(ruleListOfOne)
	}
	risky := slices.ContainsFunc(rules, mayMisread)
	for range maxUnwraps {
		if (!risky || onlyDeclared(v, a.schema.doc, a.workLeft)) && a.acceptsValue(v) {
			return v.render(), true
		}
		inner := unwrapObject(v, a.tool.Name, a.schema.doc)
		if inner == nil {
			break
		}
		v = inner
		a.addRules(ruleWrapper)
	}
	if risky && !onlyDeclared(v, a.schema.doc, a.workLeft) {
		a.problem = "they are not valid JSON: " + errAmbiguous.Error()
		return text, false
	}
	return a.coerce(v, false)
}

// readBroken reads the one value that a text means which may not be JSON.
func (a *argumentMender) readBroken(text string) (v *value, rules []string, err error) {
	if v, rules, err = readTolerant(text, a.canClose); err == nil {
		return v, rules, nil
	}
	if rest, ok := strings.CutPrefix(text, "{{"); ok {
		if v, rules, err = readTolerant("{"+rest, false); err == nil {
			return v, append(rules, ruleExtraBrackets), nil
		}
	}
	if v = repeatedValue(text); v != nil {
		return v, []string{ruleRepeated}, nil
	}
	if v = objectInProse(text); v != nil && a.canClose {
		return v, []string{ruleProse}, nil
	}
	if invalid := transcript.Valid([]byte(text), maxDepth); invalid != nil {
		return nil, nil, invalid // it says where
	}
	return nil, nil, err
}

// mayMisread reports whether a rule may have taken a quotation mark inside a string
// for the string's end.
func mayMisread(rule string) bool {
	switch rule {
	case ruleComma, ruleColon, ruleSingleQuotes, ruleSmartQuotes, ruleKeys, ruleControls, ruleExtraBrackets:
		return true
	}
	return false
}

// coerce converts values to the types of the schema. With lossless it only decodes
// JSON in strings where the schema wants an array or object.
func (a *argumentMender) coerce(v *value, lossless bool) (out string, ok bool) {
	if v.kind != kindObject || a.schema.doc == nil {
		return "", false
	}
	mended, rules := coerce(v, a.schema.doc, a.workLeft, lossless)
	if len(rules) == 0 || !a.acceptsValue(mended) {
		return "", false
	}
	a.addRules(rules...)
	return mended.render(), true
}
