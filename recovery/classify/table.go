package classify

import (
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
	{"ends-soon", (*view).endsSoon},      // the answer promises an end within twelve hours
	{"oversized", oversizedForWindow},    // one request asks for more tokens than a window allows
	{"outgrown", outgrown},               // an amount of tokens and a smaller limit are stated
	{"output-too-large", outputBreached}, // a schema check found the requested output too large
	{"outgrown-output", outgrownOutput},  // so they are, and the field is the output limit
	{"negative-output", negativeOutput},  // the requested output is below zero
	{"field-refused", fieldBreached},     // a schema check names a field that holds no content
	{"tool-path", refersToTool},          // the structure points at the definition of a tool
	{"parameter-refused", refusesKnown},  // a known field stands close to a refusal
	{"model-named", modelNamed},          // what is called unsupported is a model, by name
	{"empty", func(v *view) bool { return v.empty }},
	{"says-nothing", func(v *view) bool { return v.bare }}, // the body only repeats the status
	{"page", func(v *view) bool { return v.html }},
	{"error-event", func(v *view) bool { return v.Stream && len(v.texts)+len(v.codes) > 0 }},
}

// Table recognises failures. It is immutable and safe for concurrent use; its
// rules are read and compiled when the first failure comes.
type Table struct {
	index map[recovery.Class]*recovery.Spec
	setup *recovery.Spec // of what is a mistake of the configuration
	rules func() (*rule.List, error)
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
	v := read(ev)
	name, spec := t.decide(v)
	v.settleRetry(spec.Class)
	return recovery.Diagnosis{Spec: spec, Signal: v.Signal, Facts: gather(v, spec.Class).facts, Rule: name}
}

// Stated returns the facts by their JSON names, zeros that the text states
// included, which recovery.Facts cannot tell from silence.
func (t *Table) Stated(ev recovery.Evidence) map[string]any {
	v := read(ev)
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
	if i < 0 {
		return lastRule, t.Spec(recovery.Unknown)
	}
	r := list.Rule(i)
	return r.Name, t.Spec(recovery.Class(r.Class))
}

// guess is how sure a rule is that knows no more than the status or a code for anything.
const guess = "guess"

// lastRule decides what no other does.
const lastRule = "unknown"

// Explain tells which rules match, the first of which decides, and which came
// near. Both are empty where no answer came that could be read.
func (t *Table) Explain(ev recovery.Evidence) (matching, near []rule.Finding) {
	v := read(ev)
	if transport(v) != nil {
		return nil, nil
	}
	t.decide(v)
	list, _ := t.rules()
	return list.Explain(v.subject())
}

// subject is the view as rules see it.
func (v *view) subject() rule.Subject {
	return rule.Subject{Text: v.text, Codes: v.codes, Status: v.Status, Scene: v}
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
