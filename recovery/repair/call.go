package repair

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// arguments mends the arguments of one call of a known tool.
type arguments struct {
	mender *Mender
	tool   *transcript.Tool
	schema *schema
	close  bool // missing brackets may be closed
	work   *int // that is left for the answer

	rules   []string
	problem string // what was wrong last, in words
	skipped bool   // too large to judge
	late    bool   // so much was judged before that these are not mended
}

// guard reports whether nothing but lossless unwrapping is right. It is asked only
// where something is wrong.
func (a *arguments) guard() bool { return a.mender.guarded(a.tool) }

// valid reports whether text is an object that the schema accepts, as it stands.
func (a *arguments) valid(text string) bool {
	if a.schema.certainly(text) {
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
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		a.problem = err.Error()
		return false
	}
	return a.accepts(v)
}

func (a *arguments) accepts(v any) bool {
	var failure *jsonschema.ValidationError
	if failure, a.skipped = a.schema.check(v, a.work); failure != nil {
		a.problem = explain(failure)
		return false
	}
	return true
}

// passes is accepts for a value that was mended. One that could not be checked
// is not taken, unless there is no schema to check it with.
func (a *arguments) passes(v *value) bool {
	if v.kind != kindObject {
		a.problem = "they are not a JSON object"
		return false
	}
	return a.schema.compiled == nil || a.accepts(v.decoded()) && !a.skipped
}

// mend returns arguments that are valid. Where nothing had to be done they are
// the same and rules is empty; ok is false where nothing could be done.
func (a *arguments) mend(text string) (out string, ok bool) {
	if len(text) > maxArguments || a.late {
		a.skipped = true
		a.problem = "they are too long to be mended"
		return text, transcript.Valid([]byte(text), 1<<20) == nil
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
	if a.guard() {
		if v, _, err := readTolerant(out, false); err == nil && complete(out) {
			if out, ok = a.coerce(v, true); ok {
				return out, true
			}
		}
	} else if out, ok = a.read(out); ok {
		return out, true
	}
	// What a step found out is said only if it is nearer to the cause.
	if a.problem == "" || a.guard() {
		a.problem = problem
	}
	a.rules = nil
	a.problem += a.foreign(text)
	return text, false
}

// foreign names the members that the schema does not have: usually the model
// meant one that it has.
func (a *arguments) foreign(text string) string {
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
	return "; there is no parameter " + names(unknown)
}

// empty turns no arguments into an empty object, if the schema requires none. A
// tool that changes something must take none at all: perhaps they were lost.
func (a *arguments) empty() (string, bool) {
	object := &value{kind: kindObject}
	if !a.close {
		a.problem = "they are empty"
		return "", false
	}
	if a.guard() && (a.schema.doc == nil || len(propertiesOf(a.schema.doc)) > 0) || !a.passes(object) {
		if a.problem == "" {
			a.problem = "they are empty"
		}
		return "", false
	}
	a.rules = append(a.rules, ruleEmpty)
	return "{}", true
}

// unwrap takes off layers until what is inside validates. If it never does, it
// returns what is innermost.
func (a *arguments) unwrap(text string) (out string, ok bool) {
	for range maxUnwraps {
		if v := a.tagged(strings.TrimSpace(text)); v != nil && a.passes(v) {
			a.note(ruleParameters)
			return v.render(), true
		}
		inner, rule := peel(text)
		if rule == "" {
			break
		}
		text = strings.TrimSpace(inner)
		a.note(rule)
		if text != "" && a.valid(text) {
			return text, true
		}
	}
	v, rules, err := readTolerant(text, false)
	if err != nil || len(rules) > 0 {
		if v = repeated(text); v != nil && !a.guard() && a.passes(v) {
			a.note(ruleRepeated)
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
		a.note(ruleWrapper)
		if a.passes(v) {
			return v.render(), true
		}
		text = v.render()
	}
	return text, false
}

// tagged reads arguments that stand in tags, one for each parameter, or that
// are the whole call as Python writes it.
func (a *arguments) tagged(text string) *value {
	c := cursor{in: text}
	if !strings.HasPrefix(text, "<") {
		calls, ok := c.python()
		if !ok || len(calls) != 1 || bare(calls[0].name) != a.tool.Name || !c.end() {
			return nil
		}
		v, _, _ := readTolerant(calls[0].args, false)
		return v
	}
	params, ok := c.parameters()
	c.space()
	if !ok || len(params) == 0 || c.i < len(text) {
		return nil
	}
	return typed(params, a.schema.doc, a.work)
}

func (a *arguments) note(rules ...string) {
	for _, rule := range rules {
		if !slices.Contains(a.rules, rule) {
			a.rules = append(a.rules, rule)
		}
	}
}

// read is the tolerant way: of what is unwrapped already.
func (a *arguments) read(text string) (out string, ok bool) {
	v, rules, err := readTolerant(text, a.close)
	if rest, ok := strings.CutPrefix(text, "{{"); ok && err != nil {
		if v, rules, err = readTolerant("{"+rest, false); err == nil {
			rules = append(rules, ruleExtraBrackets)
		}
	}
	if err != nil {
		if v = repeated(text); v != nil {
			rules = []string{ruleRepeated}
		} else if inner, ok := inProse(text); ok && a.close {
			if v, _, err = readTolerant(inner, false); err != nil {
				return text, false
			}
			rules = []string{ruleProse}
		} else {
			a.problem = "they are not valid JSON: " + err.Error()
			if e := transcript.Valid([]byte(text), maxDepth); e != nil {
				a.problem = "they are not valid JSON: " + e.Error()
			}
			return text, false
		}
	}
	if v.kind == kindString { // in foreign quotes
		inner, more, err := readTolerant(v.str(), false)
		if err != nil {
			return text, false
		}
		v, rules = inner, append(append(rules, ruleEncoded), more...)
	}
	a.note(rules...)
	if v.kind == kindArray && len(v.items) == 1 && v.items[0].kind == kindObject {
		v = v.items[0]
		a.note(ruleListOfOne)
	}
	risky := slices.ContainsFunc(rules, misread)
	for range maxUnwraps {
		if (!risky || declared(v, a.schema.doc, a.work)) && a.passes(v) {
			return v.render(), true
		}
		inner := unwrapObject(v, a.tool.Name, a.schema.doc)
		if inner == nil {
			break
		}
		v = inner
		a.note(ruleWrapper)
	}
	if risky && !declared(v, a.schema.doc, a.work) {
		a.problem = "they are not valid JSON: " + errAmbiguous.Error()
		return text, false
	}
	return a.coerce(v, false)
}

// misread tells the rules under which a quotation mark inside of a string can
// look like its end.
func misread(rule string) bool {
	switch rule {
	case ruleComma, ruleColon, ruleSingleQuotes, ruleSmartQuotes, ruleKeys, ruleControls, ruleExtraBrackets:
		return true
	}
	return false
}

// coerce changes values towards the schema; lossless only decodes JSON that
// stands in strings where the schema wants no string.
func (a *arguments) coerce(v *value, lossless bool) (out string, ok bool) {
	if v.kind != kindObject || a.schema.doc == nil {
		return "", false
	}
	mended, rules := coerce(v, a.schema.doc, a.work, lossless)
	if len(rules) == 0 || !a.passes(mended) {
		return "", false
	}
	a.note(rules...)
	return mended.render(), true
}
