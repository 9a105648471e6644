package rule

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// sample is a random text that an expression matches, but for what it says of
// places and words.
func sample(re *syntax.Regexp, rnd *rand.Rand) string {
	times := func(from, to int) (s string) {
		for range from + rnd.IntN(to-from+1) {
			s += sample(re.Sub[0], rnd)
		}
		return s
	}
	switch re.Op {
	case syntax.OpLiteral:
		s := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 && rnd.IntN(2) == 0 {
			s = strings.ToUpper(s)
		}
		return s
	case syntax.OpCharClass:
		k := 2 * rnd.IntN(len(re.Rune)/2)
		return string(re.Rune[k] + rnd.Int32N(min(64, re.Rune[k+1]-re.Rune[k]+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return string(rune('a' + rnd.IntN(26)))
	case syntax.OpStar:
		return times(0, 3)
	case syntax.OpPlus:
		return times(1, 3)
	case syntax.OpQuest:
		return times(0, 1)
	case syntax.OpRepeat:
		return times(re.Min, max(re.Min, min(re.Max, re.Min+3)))
	case syntax.OpAlternate:
		return sample(re.Sub[rnd.IntN(len(re.Sub))], rnd)
	case syntax.OpCapture:
		return sample(re.Sub[0], rnd)
	case syntax.OpConcat:
		s := ""
		for _, sub := range re.Sub {
			s += sample(sub, rnd)
		}
		return s
	}
	return ""
}

// TestScanMissesNothing: what a pattern matches is among the hits of its text.
func TestScanMissesNothing(t *testing.T) {
	patterns := []string{`^\s*\d{1,7}[:|→]`, `(?i)^(?:error: )*(?:no|unknown) (?:tool|function)\b`, `\bE[A-Z]{3,12}\b`, `(?:a|bcd|)efg?`,
		`^(?:\S+: )?x{3,5}`, `(?i)ſtraße|Kelvin`,
		`[45]\d\d`, `^[*>]?$`, `(?i)Zeitüberschreitung|超时`, `^(?:[A-Z]\w*Error|E: ).*`, `(?:ab?c){2,3}`, `^$`, `(?m)^x`, `(?i)[st]imed[ -]out`, `^a|^b`,
		`(?i)\b(?:invalid|bad|Kelvin) (?:\w+ )?(?:option|flag|Straße)s?\b.{0,9}(?:given|超时)?`, `(?:abc+|bcd)+ (?:xyz|[0-9]{3}) (?:one|two){1,2}$`}
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, expr := range patterns {
		l, err := Compile(Set{Rules: []Rule{{Name: "r", Class: "c", Patterns: []string{expr}, Examples: []string{"x"}}}}, Vocabulary{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Index(); err != nil {
			t.Fatal(err)
		}
		re, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		want, matched := regexp.MustCompile(expr), 0
		for range 3000 {
			text := sample(re, rnd)
			s := Subject{Raw: text}
			if !want.MatchString(text) {
				continue
			}
			matched++
			if l.FirstOf(Mask{true}, l.Scan(nil, text), &s) != 0 {
				t.Fatalf("%q is kept from %s", text, expr)
			}
		}
		if matched < 200 {
			t.Errorf("only %d samples match %s", matched, expr)
		}
	}
}

// TestNeed: an expression with many alternatives, some of them short, is tried only where one of them stands.
func TestNeed(t *testing.T) {
	words := []string{"no key"}
	for i := range 60 {
		words = append(words, fmt.Sprintf("w%02d (?:is|was) (?:gone|away)", i))
	}
	expr := `(?i)^(?:error: )?(?:` + strings.Join(words, "|") + ")"
	l, err := Compile(Set{Rules: []Rule{{Name: "r", Class: "c", Patterns: []string{expr}, Examples: []string{"x"}}}}, Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Index(); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{"Error: w07 is away": 1, "No key": 1, "error: w59 was gone": 1, "all tests passed": 0, "error: w60 is gone": 0} {
		if got := len(l.Scan(nil, line)); got != want {
			t.Errorf("%q has %d hits, want %d", line, got, want)
		}
	}
}

// TestNotes: what is noted about the hits of a line is about its text, not about what is around it.
func TestNotes(t *testing.T) {
	l, err := Compile(Set{Rules: []Rule{
		{Name: "not-this", Class: "c", Any: []string{"cannot"}, Not: []string{"open"}, Examples: []string{"x"}},
		{Name: "if-failed", Class: "c", Patterns: []string{"cannot (?:open|read)", "^cannot"}, When: []string{"failed"}, Examples: []string{"x"}},
		{Name: "any", Class: "c", Any: []string{"open"}, Examples: []string{"x"}}}}, Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Index(); err != nil {
		t.Fatal(err)
	}
	const line = "cannot open a.txt"
	hits, all := l.Scan(nil, line), Mask{true, true, true}
	for i, c := range []struct {
		fact string
		want int
	}{{"", 2}, {"failed", 1}, {"", 2}, {"failed", 1}} {
		if got := l.FirstOf(all, hits, &Subject{Raw: line, Fact: c.fact}); got != c.want {
			t.Errorf("question %d, fact %q: rule %d, want %d", i+1, c.fact, got, c.want)
		}
	}
}

// TestKnownNeeds: a set whose needs are known is compiled without parsing a pattern, also behind an operator's rules, and
// its scans find the same.
func TestKnownNeeds(t *testing.T) {
	own := Set{Rules: []Rule{{Name: "own", Patterns: []string{"[a-z]+: my own"}, Examples: []string{"x"}}}}
	set := Set{Pieces: map[string][]string{"p": {"no", "unknown"}}, Rules: []Rule{
		{Name: "joined", Begin: `^\s*`, Patterns: []string{`\d+:`, `#\w`, "(${p}) tool"}, NotPatterns: []string{"tooling"}, End: "$", Examples: []string{"x"}},
		{Name: "near", Patterns: []string{"${p} function"}, Near: []string{"^call"}, Examples: []string{"x"}}}}
	known := set
	known.Needs = NeedsOf(set)
	c := compiler{pieces: set.Pieces, known: known.Needs}
	for _, r := range set.Rules {
		c.rule(r, "")
	}
	if len(c.computed) > 0 || len(c.errs) > 0 {
		t.Errorf("%d patterns are parsed, %v", len(c.computed), c.errs)
	}
	var lists [2]*List
	for i, s := range []Set{set, known} {
		var err error
		if lists[i], err = Compile(Join(own, s), Vocabulary{}); err != nil {
			t.Fatal(err)
		}
		if err = lists[i].Index(); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"12:", "#a", "No tool", "unknown function", "x: my own", "none"} {
		if got, want := lists[1].Scan(nil, line), lists[0].Scan(nil, line); !slices.Equal(got, want) {
			t.Errorf("%q has the hits %v, without known needs %v", line, got, want)
		}
	}
}

// FuzzScan: no pattern of an operator makes the compiler or the search panic, and
// none is kept from a line that it matches.
func FuzzScan(f *testing.F) {
	for _, s := range []string{"a.c", "(?i)ab{2,3}", "${p}", "[^a]", "$", "\\x{FE0F}", "(?:a|b", "\xff", "K"} {
		f.Add(s, "a b "+s)
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		l, err := Compile(Set{Pieces: map[string][]string{"p": {expr}}, Rules: []Rule{
			{Name: "r", Patterns: []string{expr}, Begin: "", Near: []string{expr}, Examples: []string{text}},
			{Name: "s", Any: []string{"a…b"}, Patterns: []string{expr}, Begin: "^", Examples: []string{text}}}}, Vocabulary{})
		if err != nil || l.Index() != nil {
			return
		}
		s := Subject{Raw: text, Surroundings: allNear{}}
		if want, got := l.First(s), l.FirstOf(Mask{true, true}, l.Scan(nil, text), &s); got != want && plainCase(text) {
			t.Fatalf("%q in %q: %d, with all tried %d", expr, text, got, want)
		}
	})
}

// plainCase reports whether capitals of a text become its small letters again.
func plainCase(text string) bool {
	small := strings.ToLower(text)
	return strings.ToLower(strings.ToUpper(text)) == small
}

// allNear is a scene where everything is near.
type allNear struct{}

func (allNear) Holds(string, int) bool           { return false }
func (allNear) Near(int, func(string) bool) bool { return true }
