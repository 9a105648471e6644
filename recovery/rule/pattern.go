package rule

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// maxPattern bounds an expression with its pieces written out, in bytes.
const maxPattern = 4000

// pattern is a regular expression that is compiled when it is first tried. Most
// of a large set are never tried in one process.
type pattern struct {
	shown string // as the file has it
	part  string // the same with its pieces, without what its rule's expressions begin and end with
	expr  string
	need  []string
	group bool // it has groups that are asked for
	once  sync.Once
	re    *regexp.Regexp
}

// newPattern checks an expression in which pieces are written out.
func newPattern(expr string) (*pattern, error) {
	if len(expr) > maxPattern {
		return nil, errors.New("is too long with its pieces")
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return &pattern{expr: expr, need: needOf(parsed), group: parsed.MaxCap() > 0}, nil
}

// vague reports whether no text keeps the pattern from being tried on a line.
func (p *pattern) vague() bool { return p.need == nil && !p.group }

func (p *pattern) in(text string) bool {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re.MatchString(text)
}

// Bounds of the texts that are gathered of one expression.
const (
	minNeed  = 3 // bytes of each
	maxNeeds = 48
)

// needOf is what every text has that an expression matches: one of these, in lower case;
// nil is not known. It keeps the expression from being tried on others.
func needOf(re *syntax.Regexp) []string { return textsOf(re).best() }

// texts is what a part of an expression stands for.
type texts struct {
	all []string // everything that it matches, nil if that is too much
	one []string // every match has one of them, nil if none is known
}

// best is the set to look for.
func (t texts) best() []string {
	if telling(t.all) > telling(t.one) {
		return t.all
	}
	if telling(t.one) == 0 {
		return nil
	}
	return t.one
}

// telling says how well a set keeps an expression from being tried: by its shortest
// text, and a little by how few there are. Words that most errors have tell little.
func telling(set []string) int {
	if len(set) == 0 {
		return 0
	}
	least := 100
	for _, s := range set {
		size := len(s)
		switch strings.Trim(s, " :'\"") {
		case "error", "the", "failed", "not", "invalid", "line", "file":
			size = minNeed
		}
		least = min(least, size)
	}
	if least < minNeed {
		return 0
	}
	return 8*min(least, 12) - min(len(set), maxNeeds)
}

func textsOf(re *syntax.Regexp) texts {
	switch re.Op {
	case syntax.OpLiteral:
		return texts{all: []string{strings.ToLower(string(re.Rune))}}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return texts{all: []string{""}}
	case syntax.OpCharClass:
		return texts{all: runesOf(re.Rune)}
	case syntax.OpCapture:
		return textsOf(re.Sub[0])
	case syntax.OpQuest:
		return texts{all: union([][]string{{""}, textsOf(re.Sub[0]).all})}
	case syntax.OpPlus:
		return texts{one: textsOf(re.Sub[0]).best()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return texts{one: textsOf(re.Sub[0]).best()}
		}
	case syntax.OpAlternate:
		var all, one [][]string
		for _, sub := range re.Sub {
			t := textsOf(sub)
			all, one = append(all, t.all), append(one, t.best())
		}
		return texts{all: union(all), one: union(one)}
	case syntax.OpConcat:
		return textsOfRow(re.Sub)
	}
	return texts{}
}

// textsOfRow joins what stands side by side.
func textsOfRow(row []*syntax.Regexp) texts {
	all, whole := []string{""}, true
	var one []string
	consider := func(set []string) {
		if telling(set) > telling(one) {
			one = set
		}
	}
	for _, sub := range row {
		t := textsOf(sub)
		next := product(all, t.all)
		if next != nil {
			all = next
			continue
		}
		whole = false
		consider(all)
		consider(t.one)
		if all = t.all; all == nil {
			all = []string{""}
		}
	}
	if whole {
		return texts{all: all}
	}
	consider(all)
	return texts{one: one}
}

// runesOf lists the runes of a class, nil if there are many.
func runesOf(pairs []rune) (out []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1]-pairs[i] > 8 || len(out) > 12 {
			return nil
		}
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			out = append(out, strings.ToLower(string(r)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// union is nil where one of the sets is.
func union(sets [][]string) (out []string) {
	for _, s := range sets {
		if s == nil {
			return nil
		}
		out = append(out, s...)
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxNeeds {
		return nil
	}
	return out
}

// product is each text of a followed by each of b, nil if either is or they are many.
func product(a, b []string) (out []string) {
	if a == nil || b == nil || len(a)*len(b) > maxNeeds {
		return nil
	}
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}
