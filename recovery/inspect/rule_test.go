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
	for _, name := range append(blindFiles(), "corpus.jsonl") {
		for i, r := range rows(t, name) {
			if strings.HasPrefix(name, "round") && i%4 != 0 {
				continue // enough, and the race detector is slow
			}
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
				if len(n) < 3 {
					t.Errorf("%s needs %q, which is too short for the index", r.name, n)
				}
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

// The index finds the same rules as looking for each text.
func TestNeedIndex(t *testing.T) {
	for _, name := range []string{"round6.jsonl"} {
		for _, r := range rows(t, name) {
			for line := range strings.SplitSeq(strings.ToLower(short(r.Content)), "\n") {
				found, n := needs.find(line), 0
				for _, table := range tables {
					for _, rule := range table {
						if found.has(n) != containsAny(line, rule.need) {
							t.Fatalf("%s on %q: %v", rule.name, line, found.has(n))
						}
						n++
					}
				}
				if n > 64*len(found) {
					t.Fatalf("%d rules do not fit into a set", n)
				}
			}
		}
	}
}
