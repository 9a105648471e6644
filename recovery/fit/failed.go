package fit

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

var (
	exitStatus = recovery.NewPattern(`(?i)(?:exit(?:ed)?(?: with)?[ _](?:code|status)"?|returncode>?|exit code)[:=\s]*(-?\d+)`)
	errorHead  = recovery.NewPattern(`(?i)^\W{0,4}(?:\w{0,30}error\b|traceback \(|fatal:|exception\b|failed\b|could not|cannot |command timed out|command ` +
		`failed|enoent|<tool_use_error>|invalid )`)
	errorTail = recovery.NewPattern(`(?m)^(?:\w*(?:Error|Exception)\b.*|.*: command not found|.*: [Nn]o such file or directory|.*: [Pp]ermission denied|` +
		`make: \*\*\* .*|npm ERR!.*|error: .*)$`)
)

// reportsFailure reports whether a result says that its call failed. It serves to protect
// unresolved errors, so in doubt it says yes if the beginning or the end looks like an
// error. With data set, the end does not count: it belongs to what was read.
func reportsFailure(text string, data bool) bool {
	const ends = 600
	trimmed := strings.TrimSpace(text)
	if isCompressed(trimmed) {
		return false
	}
	if e, ok := trajectory.ReadEnvelope(trimmed); ok && e.Fields > 0 {
		if e.HasExit {
			return e.Exit != 0
		}
		return e.Said == trajectory.Failed || e.Said == trajectory.Unknown && e.Failure != ""
	}
	head, tail := recovery.Head(trimmed, ends), recovery.Tail(trimmed, ends)
	if all := exitStatus.FindAllStringSubmatch(tail, -1); len(all) > 0 {
		return all[len(all)-1][1] != "0"
	}
	if m := exitStatus.FindStringSubmatch(head); m != nil && m[1] != "0" {
		return true
	}
	if errorHead.MatchString(head) {
		return true
	}
	if data {
		return false
	}
	lines := strings.Split(tail, "\n")
	return errorTail.MatchString(strings.Join(lines[max(0, len(lines)-3):], "\n"))
}

// errorIn returns the first and the last line that name an error; "" if none does.
func errorIn(text string) string {
	first, last := "", ""
	for line := range strings.Lines(bothEnds(text, maxSearched)) {
		if line = oneLine(line, maxLine/2); line == "" || exitStatus.MatchString(line) || !errorLine.MatchString(line) {
			continue
		}
		if first == "" {
			first = line
		} else {
			last = line
		}
	}
	if last == "" || last == first {
		return first
	}
	return first + " … " + last
}
