package recovery

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled when it is first needed:
// there are hundreds of them, most are never needed in one process, and the
// gateway's start would wait for all. Safe for concurrent use. A test compiles
// every one, so that none fails later.
type Pattern struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

// NewPattern returns a pattern in the syntax of package regexp. Where expr is
// wrong its first use panics.
func NewPattern(expr string) *Pattern { return &Pattern{expr: expr} }

func (p *Pattern) compiled() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}

// String is the expression.
func (p *Pattern) String() string { return p.expr }

// The methods of regexp.Regexp of the same names.

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindString is the leftmost match.
func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringSubmatch is the leftmost match with its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// SubexpNames are the names of the groups, "" for those without one and for the whole.
func (p *Pattern) SubexpNames() []string { return p.compiled().SubexpNames() }

// FindAllString is the first n matches, all if n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }

// FindAllStringSubmatch is the first n matches with their groups.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is where those stand.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString replaces all matches. Where there is none it allocates nothing,
// while the method of regexp.Regexp does.
func (p *Pattern) ReplaceAllString(s, by string) string {
	if !p.MatchString(s) {
		return s
	}
	return p.compiled().ReplaceAllString(s, by)
}
