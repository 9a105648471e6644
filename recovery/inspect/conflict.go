package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// An output often holds evidence of two categories: a flag whose value did not
// parse, a file that could not be opened for want of a permission. A known relation
// tells which of them names the failure; without one nobody is told.

// outranks are known relations: of a failure that shows both, the category before
// the colon is the cause, or the narrower name.
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
	// reasonless says that a file could not be had, but not why.
	reasonless = recovery.NewPattern(`(?i)\b(?:could not|couldn't|cannot|can't|unable to|failed to) (?:open|read|load|access|find)\b`)
	reason     = recovery.NewPattern(`(?i)no such|not found|not exist|n't exist|\bENOENT\b|os error 2|errno 2\b`)
	// ofOption names an option whose value did not parse.
	ofOption = recovery.NewPattern(`(?i)\b(?:flag|option|argument|parameter):? ['"‘\x60]?-{1,2}\w|['"‘\x60]?--?[a-z][\w-]*(?:=\S*)?['"’\x60]? (?:flag|option|argument)\b`)
)

// prefers reports whether evidence of category a, on the line, names a failure
// better than evidence of b on the same one.
func prefers(a, b recovery.Category, line string) bool {
	if a == recovery.SyntaxError && b == recovery.InvalidArguments || a == recovery.InvalidArguments && b == recovery.SyntaxError {
		return ofOption.MatchString(line) == (a == recovery.InvalidArguments)
	}
	return outranked(a, b)
}

func outranked(a, b recovery.Category) bool {
	for _, c := range outranks[a] {
		if c == b {
			return true
		}
	}
	return false
}

// settle looks for evidence of other categories than that of the rule found on
// line at. It returns the better rule with its line, and whether the category is sure.
func (v *view) settle(best *rule, how form, at, end int) (*rule, form, int, bool) {
	if better, sure := onLine(best, how, v.lines[at]); !sure {
		return best, how, at, false
	} else if better != best {
		best, how = better, better.form
	}
	vague := best.category == recovery.FileNotFound && reasonless.MatchString(v.lines[at]) && !reason.MatchString(v.lines[at])
	for i := range end {
		if i == at || i < at && how != loose {
			continue
		}
		r, form := v.evidence(i, end, how == loose || vague)
		switch {
		case r == nil || r.category == best.category || r.category == recovery.CategoryNone:
		case vague && i > at && r.category == recovery.PermissionDenied:
			return r, form, i, true
		case form == loose && how != loose:
		case !outranked(best.category, r.category):
			return best, how, at, false
		}
	}
	return best, how, at, true
}

// onLine weighs the other rules that match the line of a rule. The tables' order
// decided between forms; a wording decides nothing against a form.
func onLine(best *rule, how form, line string) (better *rule, sure bool) {
	for _, r := range matches(short(line)) {
		switch {
		case r.category == best.category || r.category == recovery.CategoryNone || best.category == recovery.CategoryNone:
		case r.category == recovery.SyntaxError && best.category == recovery.InvalidArguments && how != loose:
		case prefers(r.category, best.category, line) && (r.form != loose || how == loose):
			return r, true
		case how == loose && !prefers(best.category, r.category, line):
			return best, false
		}
	}
	return best, true
}

// told is the finding of a rule on a line that decides alone, with such a confidence
// if nothing on the line speaks for another category.
func told(r *rule, line string, confidence float64) finding {
	better, sure := onLine(r, r.form, line)
	if !sure {
		confidence = doubtful
	}
	return finding{true, better.category, confidence, better.name, line}
}

// matches are all rules that match a line.
func matches(line string) (out []*rule) {
	may := needs.find(line)
	for n := may.next(0); n >= 0; n = may.next(n + 1) {
		if r := needs.rules[n]; r.re.MatchString(line) {
			out = append(out, r)
		}
	}
	return out
}

var (
	// missingName is an exception that says which name was not there: a word without slash
	// and dot, a program's as much as a file's.
	missingName = recovery.NewPattern(`(?:(?:\[Errno 2\] |FileNotFound\w*: |^)No such file or directory: |Errno::ENOENT\b.*No such file or directory - |os error 2\): )['"]?[\w+-]+['"]?$|No such file or directory - [\w+-]+ \(Errno::ENOENT\)$`)
	fileVerb    = recovery.NewPattern(`(?i)\b(?:open|read|write|stat|listdir|scandir|chdir|unlink|remove|rmdir|rename|load|rb_sysopen|rb_file|dir_\w+)\b`)
)

// programOrFile reports that a missing name in an exception without its frames may
// be a program that was to be run.
func programOrFile(line, frames string) bool {
	return missingName.MatchString(line) && !strings.Contains(frames, `  File "`) && !fileVerb.MatchString(line)
}
