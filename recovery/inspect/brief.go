package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
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
	if len(v.lines) > maxBrief || v.kind != kindShell || v.prints || v.data() {
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

// reported is a program's word on an error that it asked for, or a list of errors.
var reported = recovery.NewPattern(`^(?:[\w ]{1,40}: E[A-Z]{3,14}$|[\[({"'\d]|error:[0-9A-F]{8}:)`)

// printsData reports whether a command has a program that prints what it reads, at
// another place than behind a pipe, where it filters what the one before it says.
func printsData(command string) bool {
	piped := false
	from := 0
	for _, part := range splitCommand(command) {
		if from > 0 {
			piped = from < len(command) && command[from-1] == '|' && (from < 2 || command[from-2] != '|')
		}
		if list := programs(part); !piped && len(list) > 0 && (readers[list[0]] || printing[list[0]] || slices.Contains(strings.Fields(part), "logs")) {
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
