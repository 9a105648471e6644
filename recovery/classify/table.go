package classify

import (
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// Config is what an operator adds.
type Config struct {
	// Rules come before those of the program, so they decide first. They may use
	// the program's lists of words. [Table.Check] runs their examples.
	Rules []rule.Rule `yaml:"rules"`
}

// Defaults adds no rules.
func Defaults() Config { return Config{} }

// vocabulary is what rules may conclude here, and the facts that they may ask for.
func vocabulary() rule.Vocabulary {
	var v rule.Vocabulary
	for _, s := range Specs() {
		v.Classes = append(v.Classes, string(s.Class))
	}
	for _, f := range facts {
		v.Facts = append(v.Facts, f.name)
	}
	return v
}

// facts are what no wording can express, for the conditions when and unless.
var facts = [...]struct {
	name  string
	holds func(*view) bool
}{
	{"ends-soon", (*view).endsSoon},              // the answer promises an end within twelve hours
	{"oversized", oversizedForWindow},            // one request asks for more tokens than a window allows
	{"outgrown", outgrown},                       // an amount of tokens and a smaller limit are stated
	{"output-too-large", (*view).outputBreached}, // a schema check found the requested output too large
	{"outgrown-output", outgrownOutput},          // so they are, and the field is the output limit
	{"field-refused", (*view).fieldBreached},     // a schema check names a field that holds no content
	{"tool-path", refersToTool},                  // the structure points at the definition of a tool
	{"parameter-refused", refusesKnown},          // a known field stands close to a refusal
	{"empty", func(v *view) bool { return v.empty }},
	{"says-nothing", func(v *view) bool { return v.bare }}, // the body only repeats the status
	{"page", func(v *view) bool { return v.html }},
	{"error-event", func(v *view) bool { return v.Stream && len(v.texts)+len(v.codes) > 0 }},
}

// Table recognises failures. It is immutable and safe for concurrent use; its
// rules are read and compiled when the first failure comes.
type Table struct {
	index  map[recovery.Class]*recovery.Spec
	setup  *recovery.Spec // of what is a mistake of the configuration
	inside *recovery.Spec // of an unknown error under a status of success
	quoted *recovery.Spec // of an error that only the request's own words name
	rules  func() (*rule.List, error)
}

var _ recovery.Classifier = (*Table)(nil)

// New makes a table of the operator's rules and those that load returns, in this
// order. It is meant to be made once and shared. If the rules cannot be read,
// which Check tells, every answer is of class unknown.
func New(load func() (rule.Set, error), own ...rule.Rule) *Table {
	t := &Table{index: make(map[recovery.Class]*recovery.Spec)}
	for _, s := range Specs() {
		t.index[s.Class] = s
	}
	setup := *t.index[recovery.ServerError]
	setup.Setup, setup.Plan = true, []string{planMove}
	t.setup = &setup
	// No client causes an error under a status of success: what nobody knows there may move.
	inside := *t.index[recovery.Unknown]
	inside.Plan = []string{planWait, planMove, planResend}
	t.inside = &inside
	quoted := *t.index[recovery.Unknown]
	quoted.Scope, quoted.Status, quoted.Plan = recovery.ScopeRequest, http.StatusBadRequest, []string{planExplain}
	t.quoted = &quoted
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

// Warm reads and compiles the rules now, so that the first failure does not wait for it.
func (t *Table) Warm() { _, _ = t.rules() }

// Classify names the failure. It is pure and total: every evidence has a
// diagnosis, the last resort being recovery.Unknown.
func (t *Table) Classify(ev recovery.Evidence) recovery.Diagnosis {
	v := read(ev, nil)
	name, spec := t.decide(v)
	v.settleRetry(spec.Class)
	d := recovery.Diagnosis{Spec: spec, Signal: v.Signal, Facts: gather(v, spec.Class).facts, Rule: name}
	if q := quoted(ev.Request, v.said); q != nil {
		t.veto(&d, read(ev, q))
	}
	return d
}

// veto corrects a diagnosis by what the upstream says in words of its own, which is
// own. A class that acts on others and is not found in that needs a status of its
// meaning; without one the failure is unknown and concerns this request only.
func (t *Table) veto(d *recovery.Diagnosis, own *view) {
	_, spec := t.decide(own)
	if spec.Class != d.Spec.Class && means(d.Spec.Class, own.Status) {
		return
	}
	own.settleRetry(d.Spec.Class)
	d.Signal.HasRetryAfter, d.Signal.RetryAfter = own.HasRetryAfter, own.RetryAfter
	facts := gather(own, d.Spec.Class).facts
	d.Quoted = spec.Class != d.Spec.Class || !reflect.DeepEqual(facts, d.Facts)
	if spec.Class != d.Spec.Class && actsOnOthers(d.Spec) {
		d.Spec, d.Facts, d.Rule = t.quoted, facts, ruleQuoted
	}
}

// actsOnOthers reports whether a class cools a credential, opens a breaker, or says
// something of a credential.
func actsOnOthers(s *recovery.Spec) bool {
	return s.Counts || s.Cools || s.Scope == recovery.ScopeCredential
}

// means reports whether a status, which no client writes, means a class that acts on others.
func means(class recovery.Class, status int) bool {
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

// Stated returns the facts by their JSON names, zeros that the text states
// included, which recovery.Facts cannot tell from silence.
func (t *Table) Stated(ev recovery.Evidence) map[string]any {
	v := read(ev, nil)
	_, spec := t.decide(v)
	v.settleRetry(spec.Class)
	return gather(v, spec.Class).named()
}

// decide returns the rule that decides, and what it means.
func (t *Table) decide(v *view) (string, *recovery.Spec) {
	if r := transport(v); r != nil {
		if r.setup {
			return r.name, t.setup
		}
		return r.name, t.Spec(r.class)
	}
	list, _ := t.rules()
	i := list.First(v.subject())
	if i < 0 || list.Rule(i).Sure == guess {
		// Nothing knows its words. If it has names instead, they are made of words.
		if names := v.names(); names != "" {
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
		return lastRule, t.Spec(recovery.Unknown)
	case v.http < 300 && (v.emptyAnswer() || v.Phase == recovery.PhaseBody && len(v.texts)+len(v.codes) == 0):
		return ruleEmpty, t.Spec(recovery.EmptyResponse)
	default:
		return lastRule, t.inside
	}
	r := list.Rule(i)
	return r.Name, t.Spec(recovery.Class(r.Class))
}

// guess is how sure a rule is that knows no more than the status or a code for anything.
const guess = "guess"

// The rules that are no data.
const (
	lastRule   = "unknown"      // decides what no other does
	ruleEmpty  = "empty-body"   // an answer without content
	ruleQuoted = "quoted-words" // only words of the request itself speak for a class
)

// Explain tells which rules match, the first of which decides, and which came
// near. Both are empty where no answer came that could be read.
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

// Holds reports whether a fact holds of the view, for rules.
func (v *view) Holds(fact string, _ int) bool {
	for _, f := range facts {
		if f.name == fact {
			return f.holds(v)
		}
	}
	return false
}

// Near is false: nothing stands around an error.
func (v *view) Near(int, func(string) bool) bool { return false }

// Spec returns the row of a class. Unheard-of classes have the row of Unknown.
func (t *Table) Spec(c recovery.Class) *recovery.Spec {
	if s, ok := t.index[c]; ok {
		return s
	}
	return t.index[recovery.Unknown]
}

// Rules returns the rules in the order in which they are tried, or why they
// cannot be used. Failures without an answer are recognised before them, by code.
func (t *Table) Rules() (*rule.List, error) { return t.rules() }
