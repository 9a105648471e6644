package rule

import (
	"cmp"
	"errors"
	"hash/fnv"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxPattern limits an expression with its pieces expanded, in bytes.
const maxPattern = 4000

// pattern is a regular expression that is compiled at its first use, since a process never tries most patterns of a large
// set.
type pattern struct {
	shown string // as in the file
	part  string // with its pieces expanded, without the rule's Begin and End
	expr  string // with both
	need  Need
	once  sync.Once
	re    *regexp.Regexp
	also  [][]string // what a text must have besides need: one of each, in lower case; set with re
}

// newPattern checks an expression whose pieces are expanded.
func (c *compiler) newPattern(expr string) (*pattern, error) {
	h := fnv.New64a()
	h.Write([]byte(expr))
	hash := h.Sum64()
	if i, known := slices.BinarySearchFunc(c.known, hash, Need.compare); known {
		return &pattern{expr: expr, need: c.known[i]}, nil
	}
	if len(expr) > maxPattern {
		return nil, errors.New("is too long with its pieces")
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := needOf(parsed)
	n.Hash = hash
	c.computed = append(c.computed, n)
	return &pattern{expr: expr, need: n}, nil
}

// vague reports whether a scan has no required text to look for before it tries the pattern. A pattern with groups is never
// vague, so that it is not joined with others.
func (p *pattern) vague() bool { return p.need.Texts == nil && !p.need.Groups }

func (p *pattern) in(text string) bool {
	p.once.Do(p.compile)
	if len(p.also) > 0 {
		low := strings.ToLower(text)
		if slices.ContainsFunc(p.also, func(set []string) bool { return !containsAny(low, set) }) {
			return false
		}
	}
	return p.re.MatchString(text)
}

// compile compiles the expression, and finds what a text must have besides need.
func (p *pattern) compile() {
	p.re = regexp.MustCompile(p.expr)
	parsed, err := syntax.Parse(p.expr, syntax.Perl)
	if err != nil {
		return // MustCompile would have failed
	}
	for _, set := range textsOf(parsed).useful() {
		if len(set) <= maxAlso && !slices.Equal(set, p.need.Texts) {
			p.also = append(p.also, set)
		}
	}
}

func containsAny(text string, set []string) bool {
	return slices.ContainsFunc(set, func(s string) bool { return strings.Contains(text, s) })
}

// Need is what every text that an expression matches must have. Other texts are not tried.
type Need struct {
	Hash   uint64     // of the expression
	Texts  []string   // the text has one of these, in lower case; nil if unknown
	First  *[256]bool // bytes with which the text may begin; nil if unknown
	Groups bool       // the expression has capturing groups
}

func (n Need) compare(hash uint64) int { return cmp.Compare(n.Hash, hash) }

// NeedsOf returns the needs of all patterns of a set, sorted by their hashes, for Set.Needs.
func NeedsOf(s Set) []Need {
	c := compiler{words: s.Words, pieces: s.Pieces}
	for _, r := range s.Rules {
		c.rule(r, "")
	}
	slices.SortFunc(c.computed, func(a, b Need) int { return a.compare(b.Hash) })
	return slices.CompactFunc(c.computed, func(a, b Need) bool { return a.Hash == b.Hash })
}

// Limits of the required texts of one expression.
const (
	minNeed  = 3  // minimum length of each, in bytes
	longNeed = 12 // longer texts are cut: the rest excludes few lines, and many texts become equal without it
	maxNeeds = 400
	maxTexts = 200 // of one part of an expression, before they are cut
	maxAlso  = 24  // of each set that is looked for besides the best one: more take as long as the expression
)

// needOf returns the need of an expression.
func needOf(re *syntax.Regexp) (n Need) {
	n.Groups = re.MaxCap() > 0
	if best := textsOf(re).best(); len(best) > 0 && len(best) <= maxNeeds {
		n.Texts = best
		return n
	}
	n.First = firstBytes(re)
	return n
}

// texts are the texts that a part of an expression matches.
type texts struct {
	all  []string   // all matches; nil if there are too many
	each [][]string // every match contains a text of each of these sets
}

// best returns the most selective of the sets; nil if none is of use.
func (t texts) best() (best []string) {
	for _, set := range slices.Concat(t.each, [][]string{reduced(t.all)}) {
		if selectivity(set) > selectivity(best) {
			best = set
		}
	}
	return best
}

// useful returns the sets that exclude anything.
func (t texts) useful() (sets [][]string) {
	for _, set := range slices.Concat(t.each, [][]string{t.all}) {
		if set = reduced(set); selectivity(set) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

// reduced returns a set whose texts occur wherever those of set do: cut to longNeed bytes, and without texts that contain
// another one.
func reduced(set []string) (out []string) {
	if len(set) == 0 || len(set) == 1 && len(set[0]) <= longNeed {
		return set
	}
	short := make([]string, 0, len(set))
	for _, s := range set {
		short = append(short, s[:min(len(s), longNeed)])
	}
	slices.SortFunc(short, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	for _, s := range short {
		if !slices.ContainsFunc(out, func(shorter string) bool { return strings.Contains(s, shorter) }) {
			out = append(out, s)
		}
	}
	return out
}

// selectivity rates a set of required texts: the longer its shortest text and, with less weight, the fewer texts, the
// better. Words that occur in most errors count as short. 0 means that the set is not useful.
func selectivity(set []string) int {
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
	return max(1, 8*min(least, longNeed)-len(set)/2)
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
		return texts{all: union([][]string{{""}, textsOf(re.Sub[0]).all}, maxTexts)}
	case syntax.OpPlus:
		return texts{each: textsOf(re.Sub[0]).useful()}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return texts{each: textsOf(re.Sub[0]).useful()}
		}
	case syntax.OpAlternate:
		var all, one [][]string
		for _, sub := range re.Sub {
			t := textsOf(sub)
			all, one = append(all, t.all), append(one, t.best())
		}
		return texts{all: union(all, maxTexts), each: [][]string{union(one, maxNeeds)}}
	case syntax.OpConcat:
		return textsOfRow(re.Sub)
	}
	return texts{}
}

// textsOfRow returns the texts of a concatenation.
func textsOfRow(row []*syntax.Regexp) texts {
	all, whole := []string{""}, true
	var each [][]string
	for _, sub := range row {
		t := textsOf(sub)
		next := product(all, t.all)
		if next != nil {
			all = next
			continue
		}
		whole = false
		each = append(append(each, texts{all: all}.useful()...), texts{each: t.each}.useful()...)
		if all = t.all; all == nil {
			all = []string{""}
		}
	}
	if whole {
		return texts{all: all}
	}
	return texts{each: append(each, texts{all: all}.useful()...)}
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

// union returns the union of the sets; nil if one of them is nil or the union has more than limit texts.
func union(sets [][]string, limit int) (out []string) {
	for _, s := range sets {
		if s == nil {
			return nil
		}
		out = append(out, s...)
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > limit {
		return nil
	}
	return out
}

// product returns each text of a followed by each text of b; nil if one of them is nil or there are too many.
func product(a, b []string) (out []string) {
	if a == nil || b == nil || len(a)*len(b) > maxTexts {
		return nil
	}
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// firstBytes returns the bytes that a match of an expression can begin with; nil if the match may begin anywhere in a text
// or be empty. Bytes outside ASCII are always among them.
func firstBytes(re *syntax.Regexp) *[256]bool {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || prog.StartCond()&syntax.EmptyBeginText == 0 {
		return nil
	}
	first, seen, empty := new([256]bool), make([]bool, len(prog.Inst)), false
	var walk func(pc uint32)
	walk = func(pc uint32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		switch i := &prog.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			walk(i.Out)
			walk(i.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			walk(i.Out)
		case syntax.InstMatch:
			empty = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for c := range first {
				first[c] = first[c] || c >= utf8.RuneSelf || i.MatchRune(rune(c))
			}
		}
	}
	walk(uint32(prog.Start))
	if empty {
		return nil
	}
	return first
}
