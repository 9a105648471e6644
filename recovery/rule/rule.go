package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Rule assigns a class to texts that meet its conditions. All conditions that are set must hold; within one condition, one
// entry suffices.
type Rule struct {
	// Name is stable: events, logs and the tools show it.
	Name string `yaml:"name"`
	// Class is the conclusion, one of Vocabulary.Classes.
	Class string `yaml:"class"`
	// Meaning is a sentence about what the rule recognises, and why it is at this position.
	Meaning string `yaml:"meaning"`
	// Sure is the certainty of the conclusion: certain (the default), likely or guess.
	Sure string `yaml:"sure"`

	// Status lists HTTP statuses: 429, 4xx for all from 400 to 499, ok for none or one below 400. NotStatus excludes
	// statuses.
	Status    []string `yaml:"status"`
	NotStatus []string `yaml:"not_status"`
	// Codes are error codes, types and reasons. Case, hyphens, underscores and
	// the endings Error and Exception are ignored; x* is a prefix, *x a suffix.
	Codes    []string `yaml:"codes"`
	NotCodes []string `yaml:"not_codes"`
	// Any and And are lists of wordings; one of each list must occur. Those of Not must not occur. See [Compile] for their
	// syntax.
	Any []string `yaml:"any"`
	And []string `yaml:"and"`
	Not []string `yaml:"not"`
	// Patterns are regular expressions; one must match if no wording of Any occurs. Each is put between Begin and End.
	// NotPatterns must not match; they are used without Begin and End. ${name} is a piece of Set.Pieces.
	Begin       string   `yaml:"begin"`
	Patterns    []string `yaml:"patterns"`
	End         string   `yaml:"end"`
	NotPatterns []string `yaml:"not_patterns"`
	// Near are regular expressions; one must match a text in the neighbourhood.
	Near []string `yaml:"near"`
	// When are facts of which one must hold, Unless facts that must not hold.
	When   []string `yaml:"when"`
	Unless []string `yaml:"unless"`

	// Examples are texts that this rule must decide, Lookalikes similar texts that it must not decide.
	Examples   []string `yaml:"examples"`
	Lookalikes []string `yaml:"lookalikes"`
}

// Set is a file of rules, in the order in which they are tried. Words are named lists of wordings; an entry $name means all
// of them. Pieces are named lists of expressions; ${name} within a pattern means any of them.
type Set struct {
	Words  map[string][]string `yaml:"words"`
	Pieces map[string][]string `yaml:"pieces"`
	Rules  []Rule              `yaml:"rules"`
	// Needs are the known needs of patterns, sorted by their hashes. Compile parses only the other patterns, which takes most
	// of its time.
	Needs []Need `yaml:"-"`
}

// Join returns the sets one after the other as one set. If two of them define words or pieces of the same name, the later
// definition applies.
func Join(sets ...Set) Set {
	out := Set{Words: map[string][]string{}, Pieces: map[string][]string{}}
	for _, s := range sets {
		maps.Copy(out.Words, s.Words)
		maps.Copy(out.Pieces, s.Pieces)
		out.Rules = append(out.Rules, s.Rules...)
		out.Needs = append(out.Needs, s.Needs...)
	}
	slices.SortFunc(out.Needs, func(a, b Need) int { return a.compare(b.Hash) })
	return out
}

// Subject is the input of rules: a text with its codes, status and facts.
type Subject struct {
	Text         string   // folded by Fold
	Raw          string   // not folded, for patterns; if it is empty, they match Text
	Codes        []string // folded by Code
	Status       int
	Surroundings Surroundings // facts and texts around the subject; nil: no fact holds and no text is near
	At           int          // its place there
	Fact         string       // a fact that holds besides those of Surroundings
}

// Surroundings gives access to the facts and texts around subjects. One value serves many subjects, so that a subject needs
// no allocation.
type Surroundings interface {
	// Holds reports whether a fact holds at a place.
	Holds(fact string, at int) bool
	// Near reports whether a text in the neighbourhood of a place matches.
	Near(at int, matches func(text string) bool) bool
}

// Vocabulary limits the classes and facts that rules may use. A nil list permits any.
type Vocabulary struct {
	Classes, Facts []string
	TextOnly       bool // the texts have neither a status nor codes
}

// List is a compiled set. After Index it is immutable and safe for concurrent use.
type List struct {
	rules   []compiled
	scanner *scanner // nil before Index
	of      []int    // the rule's index for each number of a wording or pattern; see Index
}

type compiled struct {
	Rule
	status, notStatus []span
	codes, notCodes   []code
	any, and, not     []phrase

	patterns, notPatterns, near []*pattern
	from                        int // number of the first wording of any; those of patterns follow
}

// span is a range of statuses, both ends included.
type span struct{ low, high int }

type code struct {
	text           string
	prefix, suffix bool
}

// The limits of a set, so that a set from another author stays cheap.
const (
	maxRules   = 1000
	maxPhrases = 1000 // of one condition, with all alternatives
)

// Compile returns the compiled list of a set. Wordings may occur anywhere in the folded text, in upper or lower case. In
// wordings,
//
//   - … or ... matches up to 90 bytes within the same message,
//   - <word> matches that word, but not as part of a longer one,
//   - {a,b} matches either; one may be empty: model{,s},
//   - $name alone means all wordings of that name in Set.Words.
//
// Patterns are in the syntax of package regexp.
//
// The error joins an error for each mistake; each begins with its position, as in "rules[2].any[0]: …".
func Compile(s Set, v Vocabulary) (*List, error) {
	c := compiler{words: s.Words, pieces: s.Pieces, vocabulary: v, known: s.Needs}
	if len(s.Rules) > maxRules {
		c.fail("rules", "more than %d rules", maxRules)
		return nil, errors.Join(c.errs...)
	}
	l := &List{}
	names := map[string]int{}
	for i, r := range s.Rules {
		at := "rules[" + strconv.Itoa(i) + "]"
		if first, dup := names[r.Name]; dup {
			c.fail(fmt.Sprintf("rules[%d].name", first), "another rule is called %s too: choose another name", r.Name)
		}
		names[r.Name] = i
		l.rules = append(l.rules, c.rule(r, at))
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return l, nil
}

type compiler struct {
	words      map[string][]string
	pieces     map[string][]string
	vocabulary Vocabulary
	known      []Need // by their hashes
	computed   []Need
	errs       []error
}

func (c *compiler) fail(at, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
}

func (c *compiler) rule(r Rule, at string) compiled {
	if r.Name == "" || strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		c.fail(at+".name", "must be of small letters, digits and hyphens")
	}
	if r.Sure == "" {
		r.Sure = "certain"
	}
	c.oneOf(at+".sure", r.Sure, []string{"certain", "likely", "guess"})
	c.oneOf(at+".class", r.Class, c.vocabulary.Classes)
	for _, l := range []struct {
		key   string
		names []string
	}{{"when", r.When}, {"unless", r.Unless}} {
		for i, n := range l.names {
			c.oneOf(fmt.Sprintf("%s.%s[%d]", at, l.key, i), n, c.vocabulary.Facts)
		}
	}
	out := compiled{Rule: r,
		status: c.spans(at+".status", r.Status), notStatus: c.spans(at+".not_status", r.NotStatus),
		codes: c.codes(at+".codes", r.Codes), notCodes: c.codes(at+".not_codes", r.NotCodes),
		any: c.phrases(at+".any", r.Any), and: c.phrases(at+".and", r.And), not: c.phrases(at+".not", r.Not),
		patterns:    c.patterns(at+".patterns", c.piece(at+".begin", r.Begin), r.Patterns, c.piece(at+".end", r.End)),
		notPatterns: c.patterns(at+".not_patterns", "", r.NotPatterns, ""),
		near:        c.patterns(at+".near", "", r.Near, "")}
	for _, l := range []struct {
		key   string
		count int
	}{{"status", len(r.Status)}, {"not_status", len(r.NotStatus)}, {"codes", len(r.Codes)}, {"not_codes", len(r.NotCodes)}} {
		if c.vocabulary.TextOnly && l.count > 0 {
			c.fail(at+"."+l.key, "these rules match lines of text, which have no status and no codes: use any or patterns")
		}
	}
	if len(r.Status)+len(r.Codes)+len(r.Any)+len(r.Patterns)+len(r.When) == 0 {
		c.fail(at, "needs one of status, codes, any, patterns and when; otherwise it matches every text")
	}
	if len(r.Examples) == 0 {
		c.fail(at+".examples", "needs a text that the rule decides")
	}
	return out
}

func (c *compiler) oneOf(at, s string, permitted []string) {
	if permitted != nil && !slices.Contains(permitted, s) {
		c.fail(at, "%q is none of %s", s, strings.Join(permitted, ", "))
	}
}

func (c *compiler) spans(at string, list []string) []span {
	var out []span
	for i, s := range list {
		n, err := strconv.Atoi(s)
		switch {
		case s == "ok":
			out = append(out, span{0, 399})
		case len(s) == 3 && s[0] >= '1' && s[0] <= '5' && s[1:] == "xx":
			low := 100 * int(s[0]-'0')
			out = append(out, span{low, low + 99})
		case err == nil && n >= 100 && n <= 599:
			out = append(out, span{n, n})
		default:
			c.fail(fmt.Sprintf("%s[%d]", at, i), "must be a status as 429, 4xx for all that begin with 4, or ok")
		}
	}
	return out
}

func (c *compiler) codes(at string, list []string) []code {
	var out []code
	for i, s := range list {
		k := code{text: Code(s), prefix: strings.HasSuffix(s, "*"), suffix: strings.HasPrefix(s, "*")}
		if k.text == "" {
			c.fail(fmt.Sprintf("%s[%d]", at, i), "has neither a letter nor a digit")
			continue
		}
		out = append(out, k)
	}
	return out
}

func (c *compiler) phrases(at string, list []string) []phrase {
	var out []phrase
	for i, s := range list {
		here := fmt.Sprintf("%s[%d]", at, i)
		spellings := []string{s}
		if name, ok := strings.CutPrefix(s, "$"); ok {
			if spellings, ok = c.words[name]; !ok {
				c.fail(here, "there are no words of that name: add %s under words", name)
			}
		}
		for _, spelling := range spellings {
			ps, err := newPhrases(spelling)
			if err != nil {
				c.fail(here, "%s", err)
			}
			out = append(out, ps...)
		}
		if len(out) > maxPhrases {
			c.fail(here, "more than %d wordings with their alternatives", maxPhrases)
			return nil
		}
	}
	return out
}

func (c *compiler) patterns(at, begin string, list []string, end string) []*pattern {
	var out, vague []*pattern
	for i, s := range list {
		expr, err := c.writeOut(s, 0)
		var p *pattern
		if err == nil {
			p, err = c.newPattern(wrapped(begin, expr, end))
		}
		if err != nil {
			c.fail(fmt.Sprintf("%s[%d]", at, i), "%s", err)
			continue
		}
		if p.shown, p.part = s, expr; p.vague() && begin != "" {
			vague = append(vague, p)
		} else {
			out = append(out, p)
		}
	}
	// Vague patterns are joined into one, so that a line's text for Begin is matched only once.
	if len(vague) > 1 {
		shown, parts := vague[0].shown, vague[0].part
		for _, p := range vague[1:] {
			shown, parts = shown+"|"+p.shown, parts+"|"+p.part
		}
		if p, err := c.newPattern(wrapped(begin, parts, end)); err == nil {
			p.shown = shown
			vague = []*pattern{p}
		}
	}
	return append(out, vague...)
}

// wrapped returns an expression between a rule's Begin and End.
func wrapped(begin, expr, end string) string {
	if begin+end == "" {
		return expr
	}
	return begin + "(?:" + expr + ")" + end
}

// piece returns a Begin or End with its pieces expanded.
func (c *compiler) piece(at, s string) string {
	out, err := c.writeOut(s, 0)
	if err != nil {
		c.fail(at, "%s", err)
	}
	return out
}

// writeOut replaces ${name} by the pieces of that name. A piece may contain others.
func (c *compiler) writeOut(expr string, depth int) (string, error) {
	before, rest, found := strings.Cut(expr, "${")
	if !found {
		return expr, nil
	}
	name, rest, _ := strings.Cut(rest, "}")
	piece, known := c.pieces[name]
	switch {
	case !known:
		return "", fmt.Errorf("there is no piece of that name: add %s under pieces", name)
	case depth > 8 || len(expr) > maxPattern:
		return "", errors.New("has too many pieces")
	}
	return c.writeOut(before+"(?:"+strings.Join(piece, "|")+")"+rest, depth+1)
}

// Len returns the number of rules.
func (l *List) Len() int { return len(l.rules) }

// Rule returns a rule by its index. It must not be changed.
func (l *List) Rule(i int) *Rule { return &l.rules[i].Rule }
