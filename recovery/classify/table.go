package classify

import (
	"github.com/rebound-llm/rebound/recovery"
)

// rule is one row of the table: what a failure looks like, and what it is. All
// conditions that are set must hold; the first matching row wins.
type rule struct {
	name  string
	class recovery.Class

	status []int            // one of these effective statuses
	codes  []string         // one of these codes, types or reasons; "x*" is a prefix, "*x" a suffix
	any    []string         // one of these phrases (see newPhrase)
	also   []string         // and one of these
	not    []string         // and none of these
	when   func(*view) bool // and this
}

// row is a compiled rule.
type row struct {
	rule
	spec           *recovery.Spec
	any, also, not []phrase
}

// Table recognises failures. It is immutable and safe for concurrent use.
type Table struct {
	specs []*recovery.Spec
	index map[recovery.Class]*recovery.Spec
	rows  []row
	last  row // matches everything
}

var _ recovery.Classifier = (*Table)(nil)

// New builds the table. It is meant to be built once and shared.
func New() *Table {
	t := &Table{specs: specs(), index: make(map[recovery.Class]*recovery.Spec)}
	for _, s := range t.specs {
		t.index[s.Class] = s
	}
	for _, group := range [][]rule{transportRules(), modelRules(), requestRules(), accountRules(), sizeRules(), serviceRules(), statusRules()} {
		for _, r := range group {
			t.rows = append(t.rows, t.compile(r))
		}
	}
	t.last = t.compile(rule{name: "unknown", class: recovery.Unknown})
	return t
}

func (t *Table) compile(r rule) row {
	c := row{rule: r, spec: t.index[r.class], any: newPhrases(r.any), also: newPhrases(r.also), not: newPhrases(r.not)}
	c.codes = make([]string, len(r.codes))
	for i, s := range r.codes {
		c.codes[i] = squash(s)
		switch {
		case s[len(s)-1] == '*':
			c.codes[i] += "*"
		case s[0] == '*':
			c.codes[i] = "*" + c.codes[i]
		}
	}
	return c
}

// Classify names the failure. It is pure and total: every evidence has a
// diagnosis, the last resort being recovery.Unknown.
func (t *Table) Classify(ev recovery.Evidence) recovery.Diagnosis {
	v := read(ev)
	r := t.match(v)
	v.settleRetry(r.class)
	return recovery.Diagnosis{Spec: r.spec, Signal: v.Signal, Facts: gather(v, r.class).Facts(), Rule: r.name}
}

// Stated returns the facts by their JSON names, zeros that the text states
// included, which recovery.Facts cannot tell from silence.
func (t *Table) Stated(ev recovery.Evidence) map[string]any {
	v := read(ev)
	r := t.match(v)
	v.settleRetry(r.class)
	return gather(v, r.class).named()
}

func (t *Table) match(v *view) *row {
	for i := range t.rows {
		if r := &t.rows[i]; r.matches(v) {
			return r
		}
	}
	return &t.last
}

func (r *row) matches(v *view) bool {
	if len(r.status) > 0 && !oneOf(r.status, v.Status) {
		return false
	}
	if len(r.codes) > 0 && !v.has(r.codes) {
		return false
	}
	if len(r.any) > 0 && !anyIn(r.any, v.text) {
		return false
	}
	if len(r.also) > 0 && !anyIn(r.also, v.text) {
		return false
	}
	return !anyIn(r.not, v.text) && (r.when == nil || r.when(v))
}

func oneOf(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// Spec returns the row of a class. Unheard-of classes have the row of Unknown.
func (t *Table) Spec(c recovery.Class) *recovery.Spec {
	if s, ok := t.index[c]; ok {
		return s
	}
	return t.index[recovery.Unknown]
}

// Rule is a row of the table as documentation and tests see it.
type Rule struct {
	Name  string
	Class recovery.Class
}

// Rules lists the rules in the order in which they are tried.
func (t *Table) Rules() []Rule {
	out := make([]Rule, 0, len(t.rows)+1)
	for i := range t.rows {
		out = append(out, Rule{t.rows[i].name, t.rows[i].class})
	}
	return append(out, Rule{t.last.name, t.last.class})
}

// Specs lists every class once. The rows are shared and must not be changed.
func (t *Table) Specs() []*recovery.Spec {
	return append([]*recovery.Spec(nil), t.specs...)
}
