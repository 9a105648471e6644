package annotate

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// fact is something about a failure that its result does not say. The zero fact is none.
type fact struct {
	say  string // what is known, in one or two sentences
	call string // the very call to make, in words; empty where there is none
	done bool   // it was said in each of its forms

	general bool // as the finder's
}

// A finder finds one fact. It looks at a failure of its chains, at any if there are none,
// and takes a cause only from the result's own words. What recorded sessions show to be
// wrong more often than once in twenty is no fact, and taken out.
type finder struct {
	name string
	of   []string
	find func(*failureContext) fact
	// general facts are the same for each failure of their kind: they are said once.
	general bool
}

// finders are tried in this order; the first fact counts.
var finders = [...]finder{
	{"prose", []string{command, syntax}, (*failureContext).prose, false},
	{"blank", []string{command, missingFile}, (*failureContext).missingBlank, true},
	{"bashism", []string{command, syntax}, (*failureContext).bashism, true},
	{"archive", []string{command}, (*failureContext).archive, false},
	{"no-systemd", []string{command}, (*failureContext).noSystemd, true},
	{"executable", []string{command}, (*failureContext).executable, false},
	{"stand-in", []string{command}, (*failureContext).standIn, false},
	{"nearest-tool", []string{string(recovery.ToolNotFound)}, (*failureContext).nearestTool, false},
	{"schema", []string{arguments, other}, (*failureContext).schemaFlaw, false},
	{"server-fault", []string{arguments}, (*failureContext).serverFault, true},
	{"found-path", []string{missingFile}, (*failureContext).foundPath, false},
	{"script", []string{string(recovery.PermissionDenied)}, (*failureContext).notExecutable, false},
	{"limit", []string{string(recovery.ToolRateLimited)}, (*failureContext).limit, true},
	{"input", []string{timeout}, (*failureContext).waitsForInput, true},
	{"background", []string{timeout}, (*failureContext).takesLong, true},
	{"white-space", []string{recovery.EditFailed}, (*failureContext).whiteSpace, false},
	{"left-behind", []string{syntax, other}, (*failureContext).leftBehind, false},
	{"indentation", []string{syntax}, (*failureContext).indentation, false},
	{"left-over", []string{syntax}, (*failureContext).leftOver, false},
	{"language", []string{syntax}, (*failureContext).language, true},
	{"no-json", []string{syntax, other}, (*failureContext).noJSON, true},
	{"managed", []string{other, string(recovery.PermissionDenied), command}, (*failureContext).managed, true},
	{"locked", nil, (*failureContext).locked, false},
	{"module", []string{other}, (*failureContext).module, true},
	{"names-in-database", nil, (*failureContext).inDatabase, true},
}

// Names of chains, short.
const (
	command     = string(recovery.CommandNotFound)
	missingFile = string(recovery.FileNotFound)
	arguments   = string(recovery.InvalidArguments)
	syntax      = string(recovery.SyntaxError)
	timeout     = string(recovery.ToolTimeout)
	other       = string(recovery.CategoryNone)
)

// fact is what is known of the failure, and the name of what found it. Nothing that a
// person ruled out is named.
func (s *failureContext) fact(l *recovery.Ladder) (fact, string) {
	chain := s.f.Chain()
	for _, f := range finders {
		if f.of != nil && !slices.Contains(f.of, chain) {
			continue
		}
		got := f.find(s)
		if got.say == "" {
			continue
		}
		if got.general = f.general; f.general { // it was said of another one
			if l.Rung < recovery.RungAgain && l.Met > 0 {
				got.say = ""
			}
			if l.Given > 0 {
				got.call = ""
			}
			got.done = l.Given > 1
		}
		return got, f.name
	}
	return fact{}, ""
}

// first is what a note has of the fact at its first time: what is known and what to do, since
// small models do not conclude the one from the other.
func (f fact) first() string { return strings.TrimSpace(f.say + " " + f.call) }

// firm is what a firm note has of the fact: the call alone, as a small model repeats the
// wrong name where it is quoted once more.
func (f fact) firm() string {
	if f.call == "" {
		return f.say
	}
	return "Do this next: " + strings.ToLower(f.call[:1]) + f.call[1:]
}

// run is the call of a command in words, "" where it may not be named.
func (s *failureContext) run(line string) string {
	if line == "" || len(line) > maxQuoted || strings.Contains(line, "\n") || s.uses()&shells == 0 || !s.permitted(line) {
		return ""
	}
	return "Run " + quoted(line) + "."
}

// commanded is a fact with a command: the call to make, or a part of what is said where it
// may not be named so.
func (s *failureContext) commanded(say, line, otherwise string) fact {
	if call := s.run(line); call != "" {
		return fact{say: say + ".", call: call}
	}
	return fact{say: say + ": " + otherwise + "."}
}

// says is the first group of a pattern in the failure's line, else in its content; all
// that matches where there is no group.
func (s *failureContext) says(p *recovery.Pattern) string {
	for _, text := range [...]string{s.f.Line, s.content} {
		if m := p.FindStringSubmatch(text); m != nil {
			for _, g := range m[1:] {
				if g != "" {
					return g
				}
			}
			return m[0]
		}
	}
	return ""
}

// missed reports whether an earlier result says that a program is not here.
func (s *failureContext) missed(program string) bool {
	missing := false
	s.results(program, func(_ int, text string) bool {
		for line := range strings.Lines(text) {
			missing = missing || hasWord(line, program) && absentProgram.MatchString(line)
		}
		return !missing
	})
	return missing
}

var absentProgram = recovery.NewPattern(`(?i)not found|no such file|not recognized|no module named`)
