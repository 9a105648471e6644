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

// The index finds the same rules, and signs of refusals, as looking for each text.
func TestNeedIndex(t *testing.T) {
	if n := len(needs.rules); n >= mayRefuse {
		t.Fatalf("%d rules do not fit into a set", n)
	}
	check := func(line string) {
		low, found := strings.ToLower(line), needs.find(line)
		for n, rule := range needs.rules {
			if found.has(n) != containsAny(low, rule.need) {
				t.Fatalf("%s on %q: %v", rule.name, line, found.has(n))
			}
		}
		for n, left := found.next(0), found; n >= 0; n = left.next(n + 1) {
			if !found.has(n) {
				t.Fatalf("%d is not in %v", n, found)
			}
			found[n/64] &^= 1 << (n % 64)
		}
		if found[0]|found[1]|found[2]|found[3]&^(1<<63) != 0 {
			t.Fatalf("%v were left out", found)
		}
		if found.has(mayRefuse) != containsAny(low, refusalSigns) {
			t.Fatalf("a refusal on %q: %v", line, found.has(mayRefuse))
		}
	}
	for _, r := range rows(t, "round6.jsonl") {
		for line := range strings.SplitSeq(short(r.Content), "\n") {
			check(line)
			check(strings.ToUpper(line))
		}
	}
	for _, table := range tables { // of which some are not in ASCII
		for _, r := range table {
			for _, need := range r.need {
				check(need)
				check("\u212a" + strings.ToUpper(need))
				check(need[1:] + need[:len(need)-1])
				check(strings.ReplaceAll(strings.ReplaceAll(need, "k", "\u212a"), "i", "\u0130"))
			}
		}
	}
}
