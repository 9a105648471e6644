package rule_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// one is a list with one rule of one condition.
func one(t *testing.T, any ...string) *rule.List {
	t.Helper()
	l, err := rule.Compile(rule.Set{Words: map[string][]string{"days": {"monday", "tuesday"}},
		Rules: []rule.Rule{{Name: "r", Class: "c", Any: any, Examples: []string{"x"}}}}, rule.Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWordings(t *testing.T) {
	far := strings.Repeat("x ", 60)
	for _, c := range []struct {
		wording, text string
		want          bool
	}{
		{"Rate  Limit", "The RATE LIMIT was hit", true},
		{"rate limit", "rate-limit", false},
		{"model…not found", "Model `x` was not found", true},
		{"model...not found", "Model `x` was not found", true},
		{"model…not found", "not found: model", false},
		{"model…not found", "model " + far + "not found", false},
		{"model…not found", "model ¦ not found", false},
		{"a…<b>", "a " + strings.Repeat("x", 85) + " bc", false},
		{"<tpm>", "limit (TPM): 5", true},
		{"<tpm>", "rtpm 5", false},
		{"<tpm>", "tpm_limit", false},
		{"<input", "inputs", true},
		{"input>", "inputs", false},
		{"must be <= 5", "must be <= 5", true},
		{"exceed{,s,ed} the {limit,quota}", "it exceeded the quota", true},
		{"exceed{,s,ed} the {limit,quota}", "it exceeds the window", false},
		{"$days", "see you on Tuesday", true},
		{"$days", "$days", false},
		{"额度", "您的 额度 不足", true},
	} {
		if got := one(t, c.wording).First(rule.Subject{Text: rule.Fold(c.text)}) == 0; got != c.want {
			t.Errorf("%q in %q: %v", c.wording, c.text, got)
		}
	}
}

func TestConditions(t *testing.T) {
	l, err := rule.Compile(rule.Set{Rules: []rule.Rule{
		{Name: "code", Class: "c", Codes: []string{"QuotaExceededException", "throttling*", "*_denied"}, NotCodes: []string{"fine"}, Examples: []string{"x"}},
		{Name: "status", Class: "c", Status: []string{"4xx", "503"}, NotStatus: []string{"404"}, Any: []string{"a"}, And: []string{"b", "c"},
			Not: []string{"d"}, Examples: []string{"x"}},
		{Name: "fact", Class: "c", Status: []string{"ok"}, When: []string{"f", "g"}, Unless: []string{"h"}, Examples: []string{"x"}},
	}}, rule.Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s    rule.Subject
		want int
	}{
		{rule.Subject{Codes: []string{rule.Code("quota_exceeded")}, Status: 500}, 0},
		{rule.Subject{Codes: []string{rule.Code("Throttling.RateQuota")}, Status: 500}, 0},
		{rule.Subject{Codes: []string{rule.Code("model_access_denied")}, Status: 500}, 0},
		{rule.Subject{Codes: []string{rule.Code("model_access_denied"), rule.Code("fine")}, Status: 500}, -1},
		{rule.Subject{Text: "a c", Status: 499}, 1},
		{rule.Subject{Text: "a c", Status: 503}, 1},
		{rule.Subject{Text: "a c", Status: 404}, -1},
		{rule.Subject{Text: "a", Status: 400}, -1},
		{rule.Subject{Text: "a c d", Status: 400}, -1},
		{rule.Subject{Status: 200, Surroundings: facts{"g"}}, 2},
		{rule.Subject{Surroundings: facts{"g"}}, 2},
		{rule.Subject{Status: 200, Surroundings: facts{"g", "h"}}, -1},
		{rule.Subject{Status: 200}, -1},
	} {
		if got := l.First(c.s); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.s, got, c.want)
		}
	}
	_, near := l.Explain(rule.Subject{Text: "a c d", Status: 400})
	if len(near) != 1 || near[0].Missing != "not" || near[0].Found != "a" {
		t.Errorf("near: %+v", near)
	}
}

// TestMistakes: each mistake of a file is told, with its place.
func TestMistakes(t *testing.T) {
	ok := rule.Rule{Name: "a", Class: "c", Any: []string{"x"}, Examples: []string{"x"}}
	with := func(change func(*rule.Rule)) rule.Rule { r := ok; change(&r); return r }
	for want, r := range map[string]rule.Rule{
		`rules[0].name: must be of small letters`: with(func(r *rule.Rule) { r.Name = "A b" }),
		`rules[0].class: "d" is none of c, e`:     with(func(r *rule.Rule) { r.Class = "d" }),
		`rules[0].sure: "very" is none of`:        with(func(r *rule.Rule) { r.Sure = "very" }),
		`rules[0].when[0]: "moon" is none of f`:   with(func(r *rule.Rule) { r.When = []string{"moon"} }),
		`rules[0].status[1]: must be a status`:    with(func(r *rule.Rule) { r.Status = []string{"429", "42x"} }),
		`rules[0].codes[0]: has neither a letter`: with(func(r *rule.Rule) { r.Codes = []string{"*"} }),
		`rules[0].any[0]: there are no words`:     with(func(r *rule.Rule) { r.Any = []string{"$none"} }),
		`rules[0].any[0]: is a regular expression: move it to patterns; a wording has plain words, with … for a gap`: with(func(r *rule.Rule) { r.Any = []string{`^bash: \S+: not found`} }),
		`rules[0].not[0]: a { has no }`:        with(func(r *rule.Rule) { r.Not = []string{"{a,b"} }),
		`rules[0].any[0]: is empty`:            with(func(r *rule.Rule) { r.Any = []string{"a… "} }),
		`rules[0].any[0]: stands for too many`: with(func(r *rule.Rule) { r.Any = []string{strings.Repeat("{a,b,c,d}", 9)} }),
		`rules[0]: needs one of status, codes`: with(func(r *rule.Rule) { r.Any = nil }),
		`rules[0].examples: needs a text`:      with(func(r *rule.Rule) { r.Examples = nil }),
	} {
		_, err := rule.Compile(rule.Set{Rules: []rule.Rule{r}}, rule.Vocabulary{Classes: []string{"c", "e"}, Facts: []string{"f"}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	status := with(func(r *rule.Rule) { r.Status = []string{"429"} })
	if _, err := rule.Compile(rule.Set{Rules: []rule.Rule{status}}, rule.Vocabulary{TextOnly: true}); err == nil ||
		!strings.HasPrefix(err.Error(), "rules[0].status: these rules match lines of text") {
		t.Errorf("a status where there is only text: %v", err)
	}
	if _, err := rule.Compile(rule.Set{Rules: []rule.Rule{ok, ok}}, rule.Vocabulary{}); err == nil ||
		!strings.HasPrefix(err.Error(), "rules[0].name: another rule is called a too") {
		t.Errorf("two rules of one name: %v", err)
	}
	if _, err := rule.Compile(rule.Set{Rules: make([]rule.Rule, 1001)}, rule.Vocabulary{}); err == nil || strings.Count(err.Error(), "\n") > 0 {
		t.Error("a thousand rules and one are compiled")
	}
}

// FuzzCompile: no wording of an operator makes the compiler or the search panic.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"a…b", "<a>", "{a,b}c", "$w", "…", "{", "}{", "<", ">", "a...", "\\n", "\xff"} {
		f.Add(s, "a b "+s)
	}
	f.Fuzz(func(t *testing.T, wording, text string) {
		l, err := rule.Compile(rule.Set{Words: map[string][]string{"w": {wording}}, Rules: []rule.Rule{
			{Name: "r", Any: []string{wording}, Codes: []string{wording}, Status: []string{wording}, Examples: []string{text}}}}, rule.Vocabulary{})
		if err != nil {
			return
		}
		s := rule.Subject{Text: rule.Fold(text), Codes: []string{rule.Code(text)}, Status: 429}
		matching, _ := l.Explain(s)
		if (l.First(s) == 0) != (len(matching) == 1) {
			t.Fatal("First and Explain differ")
		}
	})
}

// facts are those that hold everywhere.
type facts []string

func (f facts) Holds(fact string, _ int) bool  { return slices.Contains(f, fact) }
func (facts) Near(int, func(string) bool) bool { return false }
