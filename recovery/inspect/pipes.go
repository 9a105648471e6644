package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// A pipe has the exit code of its last program. Here is what shows nevertheless that one
// before it failed: an output that is nothing but errors, or ends as only a failing program does.

// allErrors reports whether nothing was printed but errors: what follows in a pipe
// hid the exit code.
func (v *view) allErrors() bool {
	return v.ownErrors() || v.briefErrors() || v.statedErrors() || v.kind == trajectory.Shell && !v.prints(v.quiet) && !v.data() && (v.uncaught() || v.chained())
}

// causedBy stands above each cause of an error, as Rust's programs print them.
const causedBy = "Caused by:"

// thrownAt is the line above the source with which Node.js begins to tell of an error that
// nobody caught.
var thrownAt = recovery.NewPattern(`^(?:node:[\w/.]+|\[(?:eval|stdin)\]|(?:file://)?/\S+):\d+$`)

// uncaught reports whether the output is Node.js' word on an error that nobody caught: the
// source, the message and its stack.
func (v *view) uncaught() bool {
	if len(v.lines) < 5 || !thrownAt.MatchString(v.lines[0].text) || !v.is(2, carets) {
		return false
	}
	at := 3 + slices.IndexFunc(v.lines[3:min(len(v.lines), shortResult)], func(l line) bool { return stackLine.MatchString(l.text) })
	for i := at; i < len(v.lines); i++ {
		if !v.is(i, follows) {
			return false
		}
	}
	return at > 3
}

// chained reports whether the output ends with an error and the causes below it.
func (v *view) chained() bool {
	causes := 0
	for i := len(v.lines) - 1; i >= max(0, len(v.lines)-maxReport); i-- {
		switch text := v.lines[i].text; {
		case text == causedBy:
			causes++
		case text[0] != ' ' && text[0] != '\t':
			return causes > 0 && strings.HasPrefix(text, "error: ")
		}
	}
	return false
}

// ownErrors reports whether npm, or programs that only read or copy, printed nothing
// but their own errors.
func (v *view) ownErrors() bool {
	for i := range v.lines {
		text := v.lines[i].text
		if strings.Trim(text, " \t0123456789") == "" || byNPM(text) { // wc behind the pipe
			continue
		}
		program, _, _ := strings.Cut(text, ": ")
		if !v.rules.words["readers"][program] && !v.rules.words["copiers"][program] || v.failure(&v.lines[i], i, false) == nil {
			return false
		}
	}
	return len(v.lines) > 0 && (len(v.lines) <= shortResult || byNPM(v.lines[0].text))
}

// byNPM reports whether a line is npm's: it prints such only where it fails.
func byNPM(text string) bool {
	return strings.HasPrefix(text+" ", "npm error ") || strings.HasPrefix(text+" ", "npm ERR! ")
}

// Bounds of an output that is nothing but errors, in lines.
const (
	maxBrief  = 6 // with stack frames, usage and hints
	maxErrors = 3
)

// briefErrors reports whether the whole output is a few errors in strict forms, with
// the frames and hints below them, of a command that does not print what it read: a
// program that failed behind a pipe has the exit code of the program after it.
func (v *view) briefErrors() bool {
	if len(v.lines) > maxBrief || v.kind != trajectory.Shell || v.prints(v.quiet) || v.data() {
		return false
	}
	count, class := 0, ""
	for i := range v.lines {
		text := v.lines[i].text
		r := v.failure(&v.lines[i], i, false)
		if text[0] == ' ' || text[0] == '\t' || strings.HasPrefix(text, `File "`) || r == nil && v.is(i, follows) {
			continue
		}
		if r == nil || count > 0 && r.Class != class || strings.HasPrefix(r.Name, "http-") || v.quotesSource(i) || // a linter's or a compiler's own report
			v.is(i, logged) || v.quoted(i, r) || v.is(i, wentOn) || v.is(i, meaning) || v.is(i, reported) {
			return false
		}
		count, class = count+1, r.Class
	}
	return count > 0 && count <= maxErrors
}

// statedExit is what commands print that ask for the exit code of the one before:
// echo "exit=$?".
var statedExit = recovery.NewPattern(`(?i)^(?:[\w./-]{1,40} ){0,2}(?:exit(?:ed)?(?: ?code| ?status)?|rc|status|ret(?:code|val)?) ?[=:]? ?[1-9]\d{0,2}$`)

// tellers are programs that print no file.
var tellers = []string{"echo", "printf", "curl", "wget"}

// statedErrors reports whether the output says last that what was run ended with
// another code than 0, and has nothing but errors above. What only prints that is no
// source of errors then, nor is a download that failed.
func (v *view) statedErrors() bool {
	last := len(v.lines) - 1
	if last < 1 || !statedExit.MatchString(v.lines[last].text) {
		return false
	}
	rest := *v
	rest.lines, rest.ends, rest.reports, rest.quiet = v.lines[:last], 0, 0, tellers
	return rest.ownErrors() || rest.briefErrors()
}
