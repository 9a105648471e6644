package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// An output often has evidence of two categories: a flag whose value did not parse, a file that could not be
// opened for lack of permission. A known relation decides which of them names the failure. Without one, the
// confidence stays too low for a note.

// outranks lists the known relations: if a failure shows both, the category before the colon is the cause, or
// the more specific name.
var outranks = map[recovery.Category][]recovery.Category{
	recovery.ToolNotFound:     {recovery.InvalidArguments, recovery.CommandNotFound, recovery.FileNotFound},
	recovery.DiskFull:         {recovery.FileNotFound, recovery.NetworkError, recovery.ToolRateLimited, recovery.PermissionDenied, recovery.ToolTimeout, recovery.InvalidArguments, recovery.SyntaxError},
	recovery.ToolRateLimited:  {recovery.NetworkError, recovery.PermissionDenied, recovery.ToolTimeout, recovery.InvalidArguments},
	recovery.CommandNotFound:  {recovery.FileNotFound, recovery.InvalidArguments},
	recovery.PermissionDenied: {recovery.FileNotFound, recovery.NetworkError},
	recovery.FileNotFound:     {recovery.InvalidArguments},
	recovery.InvalidArguments: {recovery.SyntaxError},
}

var (
	// reasonless matches an error about a file that gives no reason.
	reasonless = recovery.NewPattern(`(?i)\b(?:could not|couldn't|cannot|can't|unable to|failed to) (?:open|read|load|access|find)\b`)
	reason     = recovery.NewPattern(`(?i)no such|not found|not exist|n't exist|\bENOENT\b|os error 2|errno 2\b`)
	// ofOption matches the name of an option whose value did not parse.
	ofOption = recovery.NewPattern(`(?i)\b(?:flag|option|argument|parameter):? ['"‘\x60]?-{1,2}\w|['"‘\x60]?--?[a-z][\w-]*(?:=\S*)?['"’\x60]? (?:flag|option|argument)\b`)
)

// prefers reports whether evidence of category a names the failure on the line better than evidence of category
// b.
func prefers(a, b recovery.Category, line string) bool {
	if a == recovery.SyntaxError && b == recovery.InvalidArguments || a == recovery.InvalidArguments && b == recovery.SyntaxError {
		return ofOption.MatchString(line) == (a == recovery.InvalidArguments)
	}
	return slices.Contains(outranks[a], b)
}

// resolveConflict looks for evidence of other categories than that of the rule best, which matched line at. It
// returns the better rule with its line, and whether the category is certain.
func (v *view) resolveConflict(best *rule.Rule, guessed bool, at, end int) (r *rule.Rule, guesses bool, line int, sure bool) {
	text := v.lines[at].text
	if better, sure := v.bestOnLine(best, guessed, &v.lines[at]); !sure {
		return best, guessed, at, false
	} else if better != best {
		best, guessed = better, better.Sure == guess
	}
	vague := category(best) == recovery.FileNotFound && reasonless.MatchString(text) && !reason.MatchString(text)
	for i := range end {
		if i == at || i < at && !guessed {
			continue
		}
		r, guesses := v.evidence(i, end, guessed || vague)
		switch {
		case r == nil || r.Class == best.Class:
		case vague && category(r) == recovery.PermissionDenied:
			return r, guesses, i, true
		case !slices.Contains(outranks[category(best)], category(r)):
			return best, guessed, at, false
		}
	}
	return best, guessed, at, true
}

// bestOnLine compares a rule with the other rules that match its line. The rules' order already decided between
// rules on forms; a rule on wordings never outranks one on a form.
func (v *view) bestOnLine(best *rule.Rule, guessed bool, l *line) (better *rule.Rule, sure bool) {
	hits := v.hitsOf(l)
	s := rule.Subject{Raw: short(l.text)}
	for n := -1; ; {
		if n = v.rules.Next(v.rules.of[categories], hits, &s, n); n < 0 {
			return best, true
		}
		r, a, b := v.rules.Rule(n), category(v.rules.Rule(n)), category(best)
		switch {
		case a == b || a == recovery.CategoryNone || b == recovery.CategoryNone:
		case a == recovery.SyntaxError && b == recovery.InvalidArguments && !guessed:
		case prefers(a, b, l.text) && (r.Sure != guess || guessed):
			return r, true
		case guessed && !prefers(b, a, l.text):
			return best, false
		}
	}
}

// findingOf returns the finding of a rule whose line alone decides. It has the given confidence unless another
// rule matches the line for another category.
func (v *view) findingOf(r *rule.Rule, l *line, confidence float64) finding {
	better, sure := v.bestOnLine(r, r.Sure == guess, l)
	if !sure {
		confidence = doubtful
	}
	return finding{true, category(better), confidence, better.Name, l.text}
}

var (
	// missingName matches an exception that names what is missing, by a word without slash and dot: a program or a file.
	missingName = recovery.NewPattern(`(?:(?:\[Errno 2\] |FileNotFound\w*: |^)No such file or directory: |` +
		`Errno::ENOENT\b.*No such file or directory - |os error 2\): )['"]?[\w+-]+['"]?$|No such file or directory - [\w+-]+ \(Errno::ENOENT\)$`)
	fileVerb = recovery.NewPattern(`(?i)\b(?:open|read|write|stat|listdir|scandir|chdir|unlink|remove|rmdir|rename|load|rb_sysopen|rb_file|dir_\w+)\b`)
)

// programOrFile reports whether a missing name in an exception without stack frames may be a program's.
func programOrFile(line, frames string) bool {
	return missingName.MatchString(line) && !strings.Contains(frames, `  File "`) && !fileVerb.MatchString(line)
}
