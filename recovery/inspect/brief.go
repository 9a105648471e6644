package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// What a pipe hides. A program that failed behind one has the exit code of the
// program after it; then its error is all that there is.

// Bounds of an output that is nothing but errors, in lines.
const (
	maxBrief  = 6 // with stack frames, usage and hints
	maxErrors = 3
)

// briefErrors reports whether the whole output is a few errors in strict forms, with
// the frames and hints below them, of a command that does not print what it read.
func (v *view) briefErrors() bool {
	if len(v.lines) > maxBrief || v.kind != trajectory.Shell || v.prints || v.data() {
		return false
	}
	count, category := 0, recovery.CategoryNone
	for i, line := range v.lines {
		if line[0] == ' ' || line[0] == '\t' || strings.HasPrefix(line, `File "`) || follows(line) && match(line, false) == nil {
			continue
		}
		if v.quotesSource(i) {
			return false // a linter's or a compiler's own report
		}
		r := match(line, false)
		if r == nil || count > 0 && r.category != category || strings.HasPrefix(r.name, "http-") || logged(line) || quoted(r, line) ||
			mended.MatchString(line) || failedTest.MatchString(line) || meaning.MatchString(line) || reported.MatchString(line) {
			return false
		}
		count, category = count+1, r.category
	}
	return count > 0 && count <= maxErrors
}

// statedExit is what commands print that ask for the exit code of the one before:
// echo "exit=$?".
var statedExit = recovery.NewPattern(`(?i)^(?:[\w./-]{1,40} ){0,2}(?:exit(?:ed)?(?: ?code| ?status)?|rc|status|ret(?:code|val)?) ?[=:]? ?[1-9]\d{0,2}$`)

// statedErrors reports whether the output says last that what was run ended with
// another code than 0, and has nothing but errors above. What only prints that is no
// source of errors then, nor is a download that failed.
func (v *view) statedErrors() bool {
	last := len(v.lines) - 1
	if last < 1 || !statedExit.MatchString(v.lines[last]) {
		return false
	}
	rest := *v
	rest.lines, rest.prints = v.lines[:last], v.prints && printsData(v.command, tellers)
	return rest.ownErrors() || rest.briefErrors()
}

// tellers are programs that print no file.
var tellers = map[string]bool{"echo": true, "printf": true, "curl": true, "wget": true}

// reported is a program's word on an error that it asked for, or a list of errors.
var reported = recovery.NewPattern(`^(?:[\w ]{1,40}: E[A-Z]{3,14}$|[\[({"'\d]|error:[0-9A-F]{8}:)`)

// printsData reports whether a command has a program that prints what it reads, at
// another place than behind a pipe, where it filters what the one before it says.
// Programs in but are no such.
func printsData(command string, but map[string]bool) bool {
	piped := false
	from := 0
	for _, part := range splitCommand(command) {
		if from > 0 {
			piped = from < len(command) && command[from-1] == '|' && (from < 2 || command[from-2] != '|')
		}
		if list := programs(part); !piped && len(list) > 0 && !but[list[0]] && (readers[list[0]] || printing[list[0]] || slices.Contains(strings.Fields(part), "logs")) {
			return true
		}
		from += len(part) + 1
		if from < len(command) && (command[from] == '|' || command[from] == '&') {
			from++
		}
	}
	return false
}

// printing are words of the shell, and programs, that run others on what they read.
var printing = map[string]bool{"for": true, "while": true, "until": true, "if": true, "case": true, "do": true, "xargs": true, "ssh": true, "source": true,
	"docker exec": true, "kubectl exec": true, "docker compose": true, "git cat-file": true, "gh": true, "curl": true, "wget": true}
