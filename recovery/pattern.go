package recovery

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled at its first use. There are hundreds, and a process needs few of
// them; compiling all would delay the start. Safe for concurrent use. A test compiles every one, so that none fails
// later.
type Pattern struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// NewPattern returns a pattern in the syntax of package regexp. If expr is invalid, its first use
// panics.
func NewPattern(expr string) *Pattern { return &Pattern{expr: expr} }

func (p *Pattern) compiled() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}

// String returns the expression.
func (p *Pattern) String() string { return p.expr }

// The methods of regexp.Regexp of the same names.

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindString returns the leftmost match.
func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringSubmatch returns the leftmost match with its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// SubexpNames returns the names of the groups, "" for unnamed ones and for the whole.
func (p *Pattern) SubexpNames() []string { return p.compiled().SubexpNames() }

// FindAllString returns the first n matches, all if n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }

// FindAllStringSubmatch returns the first n matches with their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns the positions of the first n matches and their groups.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}

// FindAllStringIndex returns the positions of the first n matches.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}

// ReplaceAllStringFunc replaces each match with what by returns for it.
func (p *Pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.compiled().ReplaceAllStringFunc(s, by)
}

// ReplaceAllString replaces all matches. Unlike the method of regexp.Regexp, it allocates nothing if there is
// none.
func (p *Pattern) ReplaceAllString(s, by string) string {
	if !p.MatchString(s) {
		return s
	}
	return p.compiled().ReplaceAllString(s, by)
}
