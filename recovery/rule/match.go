package rule

import (
	"slices"
	"strings"
)

// First returns the index of the first rule that matches, -1 if none does.
func (l *List) First(s Subject) int {
	for i := range l.rules {
		if l.rules[i].missing(&s) == "" {
			return i
		}
	}
	return -1
}

// Finding describes how one rule matches, or nearly matches, a subject.
type Finding struct {
	Rule *Rule
	// Found is the wording, pattern or code of the rule that was found.
	Found string
	// Missing is the key of the condition that failed: "and", "not", "status" and so on. It is empty if the rule matches.
	Missing string
	// Line is the line in which Found was found, for callers that match a text line by line.
	Line string
}

// Explain returns the rules that match, in order, and those that nearly match: one of their wordings or codes was found,
// but another condition failed.
func (l *List) Explain(s Subject) (matching, near []Finding) {
	for i := range l.rules {
		c := &l.rules[i]
		f := Finding{Rule: &c.Rule, Found: c.found(&s), Missing: c.missing(&s)}
		switch {
		case f.Missing == "":
			matching = append(matching, f)
		case f.Found != "" && f.Missing != "any" && f.Missing != "codes":
			near = append(near, f)
		}
	}
	return matching, near
}

// missing returns the key of the first condition that fails, "" if the rule matches. It checks cheap conditions first.
func (c *compiled) missing(s *Subject) string {
	switch {
	case len(c.status) > 0 && !within(c.status, s.Status):
		return "status"
	case within(c.notStatus, s.Status):
		return "not_status"
	case len(c.codes) > 0 && anyCode(c.codes, s.Codes) < 0:
		return "codes"
	case len(c.any)+len(c.patterns) > 0 && anyPhrase(c.any, s.folded()) < 0 && anyPattern(c.patterns, s.raw()) < 0:
		return "any"
	}
	if key := c.missingText(s); key != "" {
		return key
	}
	return c.missingFact(s)
}

// missingText is missing for the other conditions on the text and its codes: they hold wherever the text is.
func (c *compiled) missingText(s *Subject) string {
	switch {
	case len(c.and) > 0 && anyPhrase(c.and, s.folded()) < 0:
		return "and"
	case len(c.not) > 0 && anyPhrase(c.not, s.folded()) >= 0:
		return "not"
	case anyPattern(c.notPatterns, s.raw()) >= 0:
		return "not_patterns"
	case anyCode(c.notCodes, s.Codes) >= 0:
		return "not_codes"
	}
	return ""
}

// missingFact is missing for the conditions on what is around the text.
func (c *compiled) missingFact(s *Subject) string {
	switch {
	case len(c.When) > 0 && !s.holdsAny(c.When):
		return "when"
	case s.holdsAny(c.Unless):
		return "unless"
	case len(c.near) > 0 && (s.Surroundings == nil || !s.Surroundings.Near(s.At, func(text string) bool { return anyPattern(c.near, text) >= 0 })):
		return "near"
	}
	return ""
}

// folded returns the text for wordings; it folds Raw at the first call if Text is empty.
func (s *Subject) folded() string {
	if s.Text == "" && s.Raw != "" {
		s.Text = Fold(s.Raw)
	}
	return s.Text
}

// raw returns the text for patterns.
func (s *Subject) raw() string {
	if s.Raw == "" {
		return s.Text
	}
	return s.Raw
}

// found returns the rule's first wording, pattern or code that the subject has.
func (c *compiled) found(s *Subject) string {
	if i := anyPhrase(c.any, s.folded()); i >= 0 {
		return c.any[i].String()
	}
	if i := anyPattern(c.patterns, s.raw()); i >= 0 {
		return c.patterns[i].shown
	}
	if i := anyCode(c.codes, s.Codes); i >= 0 {
		return c.codes[i].text
	}
	return ""
}

func within(spans []span, n int) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return n >= s.low && n <= s.high })
}

func anyCode(codes []code, have []string) int {
	return slices.IndexFunc(codes, func(k code) bool { return slices.ContainsFunc(have, k.is) })
}

// is reports whether k matches a code.
func (k code) is(c string) bool {
	return c == k.text || k.prefix && strings.HasPrefix(c, k.text) || k.suffix && strings.HasSuffix(c, k.text)
}

func anyPhrase(ps []phrase, text string) int {
	return slices.IndexFunc(ps, func(p phrase) bool { return p.in(text) })
}

func anyPattern(ps []*pattern, text string) int {
	return slices.IndexFunc(ps, func(p *pattern) bool { return p.in(text) })
}

func (s *Subject) holdsAny(facts []string) bool {
	return slices.ContainsFunc(facts, func(f string) bool { return f == s.Fact || s.Surroundings != nil && s.Surroundings.Holds(f, s.At) })
}
