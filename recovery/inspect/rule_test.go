package inspect

import (
	"slices"
	"strings"
	"testing"
)

// The quick test before an expression must never hide a line that it matches,
// and names must be unique and in lower case.
func TestRulesNeedWhatTheyMatch(t *testing.T) {
	seen := map[string]bool{}
	var lines []string
	for _, name := range []string{"corpus.jsonl", "blind.jsonl", "blind2.jsonl", "blind3.jsonl"} {
		for _, r := range rows(t, name) {
			v := open(toolResult(r))
			n := len(v.lines)
			lines = append(lines, v.lines[:min(n, 4)]...)
			lines = append(lines, v.lines[max(min(n, 4), n-4):]...)
			if v.decided.line != "" {
				lines = append(lines, v.decided.line)
			}
		}
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	for _, table := range tables {
		for _, r := range table {
			if seen[r.name] {
				t.Errorf("two rules are called %s", r.name)
			}
			seen[r.name] = true
			if len(r.need) == 0 {
				t.Errorf("%s has no need", r.name)
			}
			for _, n := range r.need {
				if n != strings.ToLower(n) {
					t.Errorf("%s needs %q, which is not in lower case", r.name, n)
				}
			}
			for _, line := range lines {
				line = short(line)
				if r.re.MatchString(line) && !containsAny(strings.ToLower(line), r.need) {
					t.Errorf("%s matches %q, which has nothing that it needs", r.name, line)
				}
			}
		}
	}
}
