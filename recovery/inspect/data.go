package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// fewLines is up to how many lines a reading tool's own error has.
const fewLines = 6

// judgeData looks for a reading tool's own error: the result is short and begins with it.
func (v *view) judgeData() finding {
	if len(v.lines) == 0 {
		return finding{}
	}
	if v.structured {
		if schemaProblems.MatchString(v.text) {
			return finding{true, recovery.InvalidArguments, worded, "schema-problems", firstLine(v.text)}
		}
		return finding{rule: "json-data"}
	}
	if v.outcome == succeeded && v.kind == trajectory.Reader {
		return finding{rule: "data"}
	}
	first, last := v.lines[0], v.lines[len(v.lines)-1]
	for _, line := range []string{first, last} {
		program, _, ok := strings.Cut(line, ": ")
		if !ok || len(v.programs) == 0 {
			continue
		}
		program = strings.ToLower(strings.TrimRight(program, " ")) // PowerShell sets a blank before the colon
		if !shellName.MatchString(program) && !slices.Contains(v.programs, program) {
			continue
		}
		if r := match(line, false); r != nil && !v.excused(r) {
			return told(r, line, likely)
		}
	}
	strictly := match(first, false)
	if r := strictly; r != nil && (r.category == recovery.InvalidArguments || r.category == recovery.ToolNotFound) && len(first) < 300 && len(v.text) < 4000 &&
		(len(v.lines) <= 2 || errorCall.MatchString(first)) {
		return told(r, first, likely)
	}
	if line, ok := v.usageError(len(v.lines) - 1); ok {
		return finding{true, recovery.InvalidArguments, likely, "try-help", line}
	}
	v.lines = withoutHints(v.lines)
	if v.kind != trajectory.Reader || len(v.lines) > fewLines || len(v.text) > 1500 || mayBeNumbered(first) && numbered.MatchString(first) {
		return finding{rule: "data"}
	}
	if r := strictly; r != nil && (len(v.lines) <= 2 || readerError.MatchString(first)) && !quoted(r, first) {
		return told(r, first, likely)
	}
	if len(v.lines) == 1 && strings.Contains(first, "exist") && goneAnswer.MatchString(first) {
		return finding{true, recovery.FileNotFound, likely, "path-gone", first}
	}
	if mayBeReaderError(first) && readerError.MatchString(first) {
		if r := match(first, true); r != nil && len(v.lines) <= 2 {
			return told(r, first, worded)
		}
		if len(v.lines) <= 3 {
			return finding{true, recovery.CategoryNone, other, "reader-error", first}
		}
	}
	return finding{rule: "data"}
}

// mayBeNumbered reports cheaply whether numbered may match a line.
func mayBeNumbered(line string) bool {
	begin := strings.TrimLeft(line, blanks)
	if begin == "" {
		return false
	}
	if c := begin[0]; c == 'L' || digit(c) {
		return true
	}
	for { // in the first word
		i := strings.IndexByte(begin, ':')
		if i < 0 || i+1 == len(begin) || strings.ContainsAny(begin[:i], blanks) {
			return false
		}
		if begin = begin[i+1:]; digit(begin[0]) {
			return true
		}
	}
}

// mayBeReaderError reports cheaply whether readerError may match a line: all that it
// looks for has a colon and a blank, or begins with two such letters.
func mayBeReaderError(line string) bool {
	if len(line) < 2 {
		return false
	}
	switch string([]byte{lower(line[0]), lower(line[1])}) {
	case "er", "[e", "fa", "fe", "co", "ca", "un", "re", "ht", "an":
		return true
	}
	return strings.Contains(line, ": ")
}

// goneAnswer is all that a reading tool says of a path.
var goneAnswer = recovery.NewPattern(`^(?:~?/|[A-Z]:\\)[^\s'":]{1,300} (?:does not exist|doesn't exist)\.?$`)

// withoutHints cuts off what a reading tool proposes below its refusal.
func withoutHints(lines []string) []string {
	if i := slices.IndexFunc(lines[:min(len(lines), hintLines)], isHint); i > 0 {
		return lines[:i]
	}
	return lines
}

func isHint(line string) bool {
	return strings.IndexByte(hintStarts, line[0]) >= 0 && hint.MatchString(line)
}

// hint begins a list of what could have been meant.
var hint = recovery.NewPattern(`^(?:Did you mean|Perhaps you meant|Maybe you meant|Similar (?:files|paths|names)|Closest matches|Available (?:files|paths)|Suggestions?:|Files in (?:the )?(?:same |that |this )?(?:directory|folder))`)
