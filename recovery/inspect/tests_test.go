package inspect

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
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

// spared checks that no text that one of the patterns matches is kept from it.
func spared(t *testing.T, may func(line string) bool, patterns ...*recovery.Pattern) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, p := range patterns {
		re, err := syntax.Parse(p.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		matched := 0
		for range 20000 {
			if s := sample(re, rnd); p.MatchString(s) {
				if matched++; !may(s) {
					t.Fatalf("%q is kept from %s", s, p)
				}
			}
		}
		if matched < 5000 {
			t.Errorf("only %d samples match %s", matched, p)
		}
	}
	for _, name := range corpora {
		for _, row := range rows(t, name) {
			for _, line := range textLines(nil, row.Content) {
				for _, p := range patterns {
					if !may(short(line)) && p.MatchString(short(line)) {
						t.Errorf("%q is kept from %s", line, p)
					}
				}
			}
		}
	}
}

func TestMayReport(t *testing.T) {
	spared(t, mayReport, notRun, testReport, allPassed)
	for _, line := range []string{"", "o", "func main() {", "fai", "100 % in 3 s"} {
		if mayReport(line) {
			t.Errorf("%q is no report", line)
		}
	}
}

func TestSigns(t *testing.T) {
	signs := func(list []string) func(string) bool {
		return func(line string) bool { return containsAny(strings.ToLower(line), list) }
	}
	spared(t, signs(otherSigns), otherErrors)
	spared(t, signs(timeSigns), endedForTime)
	spared(t, func(line string) bool { found := needs.find(line); return found.has(mayRefuse) }, refusals)
	spared(t, mayBeNumbered, numbered)
	spared(t, mayBeReaderError, readerError)
	spared(t, func(line string) bool { return strings.Contains(line, " --help") }, tryHelp)
	spared(t, func(line string) bool { return strings.Contains(line, "exist") }, goneAnswer)
	spared(t, func(line string) bool { return line != "" && strings.IndexByte(hintStarts, line[0]) >= 0 }, hint)
	spared(t, mayFollow, trailing)
}
