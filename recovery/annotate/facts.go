package annotate

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// fact is something about a failure that its result does not show. The zero value means that there is none.
type fact struct {
	say  string // the fact, in one or two sentences
	call string // the exact call to make, in words; empty if there is none
	done bool   // every form of the fact was already given

	general bool // copied from the finder
}

// A finder finds one fact. It looks at failures of its chains, or at any failure if it lists none, and reads a
// cause only from the result's own words. A finder that is wrong in more than one of twenty recorded cases is
// removed.
type finder struct {
	name string
	of   []string
	find func(*failureContext) fact
	// general facts are the same for every failure of their kind, so each is given only once.
	general bool
}

// finders are tried in this order; the first fact is used.
var finders = [...]finder{
	{"fence", []string{other}, (*failureContext).openFence, false},
	{"here-document", []string{syntax, other}, (*failureContext).hereDocument, false},
	{"prose", []string{command, syntax}, (*failureContext).prose, false},
	{"python", []string{command, syntax}, (*failureContext).pythonCode, true},
	{"blank", []string{command, missingFile}, (*failureContext).missingBlank, true},
	{"substituted", []string{command}, (*failureContext).substituted, false},
	{"bashism", []string{command, syntax}, (*failureContext).bashism, true},
	{"archive", []string{command}, (*failureContext).archive, false},
	{"no-systemd", []string{command}, (*failureContext).noSystemd, true},
	{"foreign-patch", []string{command}, (*failureContext).foreignPatch, true},
	{"stand-in", []string{command}, (*failureContext).standIn, false},
	{"nearest-tool", []string{string(recovery.ToolNotFound)}, (*failureContext).nearestTool, false},
	{"schema", []string{arguments, other}, (*failureContext).schemaFlaw, false},
	{"server-fault", []string{arguments}, (*failureContext).serverFault, true},
	{"found-path", []string{missingFile}, (*failureContext).foundPath, false},
	{"near-name", []string{missingFile}, (*failureContext).nearName, false},
	{"script", []string{string(recovery.PermissionDenied)}, (*failureContext).notExecutable, false},
	{"limit", []string{string(recovery.ToolRateLimited)}, (*failureContext).limit, true},
	{"input", []string{timeout}, (*failureContext).waitsForInput, true},
	{"endless", []string{timeout}, (*failureContext).endless, false},
	{"takes-long", []string{timeout}, (*failureContext).takesLong, true},
	{"white-space", []string{recovery.EditFailed}, (*failureContext).whiteSpace, false},
	{"left-behind", []string{syntax, other}, (*failureContext).leftBehind, false},
	{"indentation", []string{syntax}, (*failureContext).indentation, false},
	{"left-over", []string{syntax}, (*failureContext).leftOver, false},
	{"language", []string{syntax}, (*failureContext).language, true},
	{"no-json", []string{syntax, other}, (*failureContext).noJSON, true},
	{"managed", []string{other, string(recovery.PermissionDenied), command}, (*failureContext).managed, true},
	{"locked", nil, (*failureContext).locked, false},
	{"names-in-database", nil, (*failureContext).inDatabase, true},
}

// Short names of chains.
const (
	command     = string(recovery.CommandNotFound)
	missingFile = string(recovery.FileNotFound)
	arguments   = string(recovery.InvalidArguments)
	syntax      = string(recovery.SyntaxError)
	timeout     = string(recovery.ToolTimeout)
	other       = string(recovery.CategoryNone)
)

// fact returns the first fact about the failure and the finder's name. It never names anything that the user
// forbids.
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
		if got.general = f.general; f.general { // an earlier failure may have brought the same fact
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

// first returns the text for the first note: the fact and the call, because small models do not derive one from
// the other.
func (f fact) first() string { return strings.TrimSpace(f.say + " " + f.call) }

// firm returns the text for a firm note: only the call, because a small model repeats a wrong name that is
// quoted again.
func (f fact) firm() string {
	if f.call == "" {
		return f.say
	}
	return "Do this next: " + strings.ToLower(f.call[:1]) + f.call[1:]
}

// run words the call of a command, or returns "" if the note may not name it.
func (s *failureContext) run(line string) string {
	if line == "" || len(line) > maxQuoted || strings.Contains(line, "\n") || s.uses()&shells == 0 || !s.permitted(line) {
		return ""
	}
	return "Run " + quoted(line) + "."
}

// commanded returns a fact with a command: as the call to make, or as part of the statement if the command may
// not be named as a step.
func (s *failureContext) commanded(say, line, otherwise string) fact {
	if call := s.run(line); call != "" {
		return fact{say: say + ".", call: call}
	}
	return fact{say: say + ": " + otherwise + "."}
}

// has reports whether the failure's line or its content has one of the signs, which are in lower case, in any case. This
// takes a hundredth of the time of a pattern, and few failures have a sign.
func (s *failureContext) has(signs ...string) bool {
	if s.small == "" {
		s.small = strings.ToLower(s.f.Line + "\n" + s.content)
	}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(s.small, sign) })
}

// firstMatch returns the first non-empty group that the pattern matches in the failure's line, or else in its content;
// without groups it returns the whole match. Every match has one of the signs.
func (s *failureContext) firstMatch(p *recovery.Pattern, signs ...string) string {
	if !s.has(signs...) {
		return ""
	}
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

// reportedMissing reports whether an earlier result says that a program is not installed.
func (s *failureContext) reportedMissing(program string) bool {
	missing := false
	s.results(program, func(_ int, text string) bool {
		for line := range strings.Lines(text) {
			missing = missing || trajectory.HasWord(line, program) && absentProgram.MatchString(line)
		}
		return !missing
	})
	return missing
}

var absentProgram = recovery.NewPattern(`(?i)not found|no such file|not recognized|no module named`)
