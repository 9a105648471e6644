package inspect

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// endedCommand matches the message of an agent that quotes the command, which may span several lines:
// mini-swe-agent, SWE-agent.
var endedCommand = recovery.NewPattern(`(?s)^The (?:last )?command (?:<command>.*?</command>|'.*?'|".*?"|\x60.*?\x60) (?:(?:has |` +
	`was )?(?:timed out and (?:has been|was) killed|cancell?ed because it took (?:more|longer) than \d))`)

// quotedCommand finds that message at the beginning of the unwrapped text.
func (v *view) quotedCommand() finding {
	if v.outcome == succeeded || !strings.HasPrefix(v.text, "The ") || !endedCommand.MatchString(v.text) {
		return finding{}
	}
	return finding{true, recovery.ToolTimeout, likely, "ended-for-time", firstLine(v.text)}
}

// outOfTime finds that the call hit a time limit. This is the failure, whatever the output before it says.
func (v *view) outOfTime() finding {
	if f := v.quotedCommand(); f.failed {
		return f
	}
	for i := range v.lines {
		if v.outcome == succeeded && i > 0 {
			break // behind a pipe only a certain form at the beginning counts
		}
		r := v.first(i, ended)
		if r != nil && (r.Sure == certainly || v.outcome != succeeded && (i < 2 || i >= len(v.lines)-2)) {
			return finding{true, recovery.ToolTimeout, likely, "ended-for-time", v.lines[i].text}
		}
	}
	// xargs also exits with 124 when a program exited with 255.
	if v.exit == 124 && !slices.ContainsFunc(v.lines, func(l line) bool { return strings.HasPrefix(l.text, "xargs: ") }) {
		return finding{true, recovery.ToolTimeout, likely, "exit-124", v.lastLine()}
	}
	return finding{}
}

// stopped matches the message of an agent's own shell below the output of a command that it ended (or above it,
// for Codex); stoppedSentence matches one that is too specific to be a log line.
var (
	stopped         = recovery.NewPattern(`^(?:Command timed out after|command timed out after|Command timed out:) \d+(?:\.\d+)?(?:m \d+(?:\.\d+)?s| ?(?:ms|s|seconds?|milliseconds?|minutes?))\.?$`)
	stoppedSentence = recovery.NewPattern(`^\[The command timed out after \d+(?:\.\d+)? seconds\. .*(?:empty command|interact with the (?:current|running) process)`)
)

// readerStopped finds that a shell ended a command that only reads. The output of such a command is data, so the
// message counts only after a blank line, or in a form that no file contains.
func (v *view) readerStopped() finding {
	if v.kind != trajectory.Shell || v.outcome != unknown || len(v.lines) == 0 {
		return finding{}
	}
	if f := v.quotedCommand(); f.failed {
		return f
	}
	text := strings.TrimSpace(v.text)
	above, last := text[:strings.LastIndexByte(text, '\n')+1], v.lastLine()
	first := v.lines[0].text
	switch {
	case stopped.MatchString(last) && (above == "" || strings.HasSuffix(above, "\n\n")), stoppedSentence.MatchString(last):
		return finding{true, recovery.ToolTimeout, likely, "ended-for-time", last}
	case strings.HasPrefix(first, "command timed out after ") && stopped.MatchString(first):
		return finding{true, recovery.ToolTimeout, likely, "ended-for-time", first}
	}
	return finding{}
}
