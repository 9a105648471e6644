package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// A pipe has the exit code of its last program. This file finds signs that an earlier program failed: an output
// of only errors, or an end that only a failing program prints.

// allErrors reports whether the output consists of errors only, so that the exit code is that of a later program
// in the pipe.
func (v *view) allErrors() bool {
	return v.ownErrors() || v.briefErrors() || v.statedErrors() || v.kind == trajectory.Shell && !v.prints(v.quiet) && !v.data() && (v.uncaught() || v.chained())
}

// causedBy is the line above each cause of an error, as Rust programs print it.
const causedBy = "Caused by:"

// thrownAt matches the line above the source code with which Node.js begins the report of an uncaught error.
var thrownAt = recovery.NewPattern(`^(?:node:[\w/.]+|\[(?:eval|stdin)\]|(?:file://)?/\S+):\d+$`)

// uncaught reports whether the output is Node.js' report of an uncaught error: the source code, the message and
// its stack.
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

// chained reports whether the output ends with an error and its causes.
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

// ownErrors reports whether the output consists of errors from npm, or from programs that only read or copy.
func (v *view) ownErrors() bool {
	for i := range v.lines {
		text := v.lines[i].text
		if strings.Trim(text, " \t0123456789") == "" || byNPM(text) { // a line of wc behind the pipe
			continue
		}
		program, _, _ := strings.Cut(text, ": ")
		if !v.rules.words["readers"][program] && !v.rules.words["copiers"][program] || v.failure(&v.lines[i], i, false) == nil {
			return false
		}
	}
	return len(v.lines) > 0 && (len(v.lines) <= shortResult || byNPM(v.lines[0].text))
}

// byNPM reports whether a line is an error of npm, which it prints only if it fails.
func byNPM(text string) bool {
	return strings.HasPrefix(text+" ", "npm error ") || strings.HasPrefix(text+" ", "npm ERR! ")
}

// Limits of an output that consists of errors only.
const (
	maxBrief  = 6 // lines, with stack frames, usage and hints
	maxErrors = 3
)

// briefErrors reports whether the output consists of a few errors in strict forms, with frames and hints below
// them, and the command does not print what it reads: a program before the last one in a pipe failed.
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

// statedExit matches the output of a command that prints the previous exit code: echo "exit=$?".
var statedExit = recovery.NewPattern(`(?i)^(?:[\w./-]{1,40} ){0,2}(?:exit(?:ed)?(?: ?code| ?status)?|rc|status|ret(?:code|val)?) ?[=:]? ?[1-9]\d{0,2}$`)

// printers are programs that print no file.
var printers = []string{"echo", "printf", "curl", "wget"}

// statedErrors reports whether the last line states an exit code other than 0 and all lines above it are errors.
// In this case programs that only print, or download, do not count as programs that print what they read.
func (v *view) statedErrors() bool {
	last := len(v.lines) - 1
	if last < 1 || !statedExit.MatchString(v.lines[last].text) {
		return false
	}
	rest := *v
	rest.lines, rest.ends, rest.reports, rest.quiet = v.lines[:last], 0, 0, printers
	return rest.briefErrors()
}
