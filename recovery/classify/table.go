package classify

import (
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// Config holds the operator's settings.
type Config struct {
	// Rules are tried before the built-in ones and may use the built-in word
	// lists. [Table.Check] runs their examples.
	Rules []rule.Rule `yaml:"rules"`
}

// Defaults adds no rules.
func Defaults() Config { return Config{} }

// vocabulary lists the classes that rules may name and the facts that they may test.
func vocabulary() rule.Vocabulary {
	var v rule.Vocabulary
	for _, s := range Specs() {
		v.Classes = append(v.Classes, string(s.Class))
	}
	for _, f := range ruleFacts {
		v.Facts = append(v.Facts, f.name)
	}
	return v
}

// ruleFacts are the facts that rules test in "when" and "unless": what no wording can express.
var ruleFacts = [...]struct {
	name  string
	holds func(*view) bool
}{
	{"ends-soon", (*view).endsSoon},                   // the refusal ends within twelve hours
	{"oversized", exceedsRateWindow},                  // one request asks for more tokens than a window allows
	{"outgrown", amountExceedsLimit},                  // the text states a token count and a smaller limit
	{"output-too-large", (*view).violatesOutputLimit}, // a schema check found the requested output too large
	{"outgrown-output", outputExceedsLimit},           // as outgrown, and the refused field is the output limit
	{"field-refused", (*view).violatesField},          // a schema check names a field that holds no content
	{"tool-path", refersToTool},                       // the error names a path in a tool definition
	{"parameter-refused", refusesKnownField},          // the name of a known field is next to a refusal
	{"empty", func(v *view) bool { return v.empty }},
	{"says-nothing", func(v *view) bool { return v.onlyStatus }}, // the body only repeats the status
	{"page", func(v *view) bool { return v.html }},
	{"error-event", func(v *view) bool { return v.Stream && len(v.texts)+len(v.codes) > 0 }},
}

// Table recognises failures. It is immutable and safe for concurrent use. It
// reads and compiles its rules at the first failure.
type Table struct {
	index       map[recovery.Class]*recovery.Spec
	setupSpec   *recovery.Spec // for an error in the configuration
	successSpec *recovery.Spec // for an unknown error under a success status
	quotedSpec  *recovery.Spec // for a class that only quoted request text supports
	rules       func() (*rule.List, error)
}

var _ recovery.Classifier = (*Table)(nil)

// New returns a table of the operator's rules followed by those that load returns.
// Make it once and share it. If the rules cannot be read, every answer has the
// class unknown, and Check returns the error.
func New(load func() (rule.Set, error), own ...rule.Rule) *Table {
	t := &Table{index: make(map[recovery.Class]*recovery.Spec)}
	for _, s := range Specs() {
		t.index[s.Class] = s
	}
	setup := *t.index[recovery.ServerError]
	setup.Setup, setup.Plan = true, []string{planMove}
	t.setupSpec = &setup
	// A client does not cause an error under a success status, so another target may help.
	inside := *t.index[recovery.Unknown]
	inside.Plan = []string{planWait, planMove, planResend}
	t.successSpec = &inside
	quoted := *t.index[recovery.Unknown]
	quoted.Scope, quoted.Status, quoted.Plan = recovery.ScopeRequest, http.StatusBadRequest, []string{planExplain}
	t.quotedSpec = &quoted
	t.rules = sync.OnceValues(func() (*rule.List, error) {
		set, err := load()
		if err != nil {
			return &rule.List{}, err
		}
		list, err := rule.Compile(rule.Join(rule.Set{Rules: own}, set), vocabulary())
		if err != nil {
			return &rule.List{}, err
		}
		return list, nil
	})
	return t
}

// Classify names the failure. It is pure and total: any evidence has a
// diagnosis, by default of class recovery.Unknown.
func (t *Table) Classify(ev recovery.Evidence) recovery.Diagnosis {
	v := read(ev, nil)
	name, spec := t.decide(v)
	v.setRetryAfter(spec.Class)
	d := recovery.Diagnosis{Spec: spec, Signal: v.Signal, Facts: gatherFacts(v, spec.Class).facts, Rule: name}
	if q := findQuotes(ev.Request, v.rawTexts); q != nil {
		t.discountQuotes(&d, read(ev, q))
	}
	return d
}

// discountQuotes corrects a diagnosis by the view own, whose texts leave out what
// they quote from the request. If the class affects other requests, and neither own
// nor the status supports it, the failure becomes unknown and concerns this request only.
func (t *Table) discountQuotes(d *recovery.Diagnosis, own *view) {
	_, spec := t.decide(own)
	if spec.Class != d.Spec.Class && statusConfirms(d.Spec.Class, own.Status) {
		return
	}
	own.setRetryAfter(d.Spec.Class)
	d.Signal.HasRetryAfter, d.Signal.RetryAfter = own.HasRetryAfter, own.RetryAfter
	facts := gatherFacts(own, d.Spec.Class).facts
	d.Quoted = spec.Class != d.Spec.Class || !reflect.DeepEqual(facts, d.Facts)
	if spec.Class != d.Spec.Class && actsOnOthers(d.Spec) {
		d.Spec, d.Facts, d.Rule = t.quotedSpec, facts, ruleQuoted
	}
}

// actsOnOthers reports whether a class affects other requests: it cools a credential,
// counts for a breaker, or concerns a credential.
func actsOnOthers(s *recovery.Spec) bool {
	return s.Counts || s.Cools || s.Scope == recovery.ScopeCredential
}

// statusConfirms reports whether the status, which request text cannot change, supports the class.
func statusConfirms(class recovery.Class, status int) bool {
	switch class {
	case recovery.Auth:
		return status == 401 || status == 403
	case recovery.Permission:
		return status == 401 || status == 403
	case recovery.QuotaExhausted:
		return status == 402 || status == 403 || status == 429
	case recovery.RateLimit:
		return status == 429 || status == 503
	case recovery.Overloaded:
		return status == 429 || status >= 500
	case recovery.ServerError, recovery.Timeout:
		return status >= 500 || status == 408
	}
	return false
}

// Stated returns the facts by their JSON names. It includes zeros that the text
// states, which recovery.Facts does not tell from missing values.
func (t *Table) Stated(ev recovery.Evidence) map[string]any {
	v := read(ev, nil)
	_, spec := t.decide(v)
	v.setRetryAfter(spec.Class)
	return gatherFacts(v, spec.Class).asMap()
}

// decide returns the name of the rule that decides, and the spec of its class.
func (t *Table) decide(v *view) (string, *recovery.Spec) {
	if r := transport(v); r != nil {
		if r.setup {
			return r.name, t.setupSpec
		}
		return r.name, t.Spec(r.class)
	}
	list, _ := t.rules()
	i := list.First(v.subject())
	if i < 0 || list.Rule(i).Sure == guess {
		// No rule knows the text. If it is a name such as a code, its words may match.
		if names := v.nameText(); names != "" {
			plain := v.text
			v.text = strings.TrimPrefix(plain+" ¦ "+names, " ¦ ")
			if j := list.First(v.subject()); j >= 0 && list.Rule(j).Sure != guess {
				i = j
			} else {
				v.text = plain
			}
		}
	}
	switch {
	case i >= 0:
	case v.http < 200 || v.http >= 400:
		return ruleUnknown, t.Spec(recovery.Unknown)
	case v.http < 300 && (v.emptyAnswer() || v.Phase == recovery.PhaseBody && !v.accused()):
		return ruleEmpty, t.Spec(recovery.EmptyResponse)
	default:
		return ruleUnknown, t.successSpec
	}
	r := list.Rule(i)
	return r.Name, t.Spec(recovery.Class(r.Class))
}

// guess marks rules that know only the status, or a code that is used for anything.
const guess = "guess"

// The names of the rules that are code.
const (
	ruleUnknown = "unknown"      // no other rule matches
	ruleEmpty   = "empty-body"   // an answer without content
	ruleQuoted  = "quoted-words" // only text quoted from the request supports a class
)

// Explain returns the rules that match, of which the first decides, and those
// that nearly match. Both are nil for a transport failure.
func (t *Table) Explain(ev recovery.Evidence) (matching, near []rule.Finding) {
	v := read(ev, nil)
	if transport(v) != nil {
		return nil, nil
	}
	t.decide(v)
	list, _ := t.rules()
	return list.Explain(v.subject())
}

// subject is the view as rules see it.
func (v *view) subject() rule.Subject {
	return rule.Subject{Text: v.text, Codes: v.codes, Status: v.Status, Surroundings: v}
}

// Holds reports whether a fact is true of the view. Rules call it.
func (v *view) Holds(fact string, _ int) bool {
	for _, f := range ruleFacts {
		if f.name == fact {
			return f.holds(v)
		}
	}
	return false
}

// Near is always false: an error has no neighbouring messages.
func (v *view) Near(int, func(string) bool) bool { return false }

// Spec returns the spec of a class, or that of Unknown for a class it does not know.
func (t *Table) Spec(c recovery.Class) *recovery.Spec {
	if s, ok := t.index[c]; ok {
		return s
	}
	return t.index[recovery.Unknown]
}

// Rules returns the rules in the order in which they are tried. On error the list
// is empty. Failures without an answer never reach them: code recognises those.
func (t *Table) Rules() (*rule.List, error) { return t.rules() }
