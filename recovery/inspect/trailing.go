package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// trailing are lines that follow an error and explain it: stack frames, hints, summaries.
var trailing = recovery.NewPattern(`^(?:\s+at .*|\s*from .*:\d+.*|\s+(?:errno|code|syscall|path|type|url|spawnargs|dest|cause|cmd|killed|signal|requireStack|address|port|hostname|host|\[cause\]|stdout|stderr|pid|status|output|error|\d+): ?.*|\s*[\]}\[{)(]+[,;]?|\s*\.{3}.*|Node\.js v\d.*|(?:\S+: )?Try ['‘"` + "`" + `].*|.*\bfor more (?:information|details)\b.*|.*--help.*|[Uu]sage: .*|npm (?:error|ERR!) A complete log.*|npm (?:error|ERR!)\s+/.*|npm notice.*|note: .*|hint: .*|make(?:\[\d+\])?: \*\*\* .*|make(?:\[\d+\])?: (?:Leaving|Entering) .*|\s*\^[~^]*\s*|\s*~+\^?~*|exit status \d+|Please fix your mistakes\.|\s+\d+ \|.*|\s+\|.*|Error: Process completed.*|\s*-{3,}\s*|\[notice\].*|(?:rsync|zip|tar): error.*|.* is not recoverable: exiting now|tar: Child returned.*|See ['‘"` + "`" + `].*|Did you mean.*|Use -+h(?:elp)?\b.*|\s+\+ .*|At line:\d+ char:\d+|\s*PS> .*|Emitted 'error' event .*)$`)

// trailingSigns are what every line has one of that trailing matches, and that
// begins with no sign and has no word before a colon.
var trailingSigns = []string{"at ", "from ", "Node.js v", "Try ", "for more ", "--help", "npm ", "exit status ", "Please fix", "not recoverable", "See ", "Did you mean", "Use -",
	"PS> ", "Emitted "}

// mayFollow reports cheaply whether trailing may match a line.
func mayFollow(line string) bool {
	if colon := strings.IndexByte(line, ':'); colon > 0 && (wordByte(line[colon-1]) || line[colon-1] == ']') {
		return true
	}
	begin := strings.TrimLeft(line, blanks)
	return begin == "" || strings.IndexByte("[]{}().^~|+-0123456789", begin[0]) >= 0 || containsAny(line, trailingSigns)
}

// follows reports whether a line is one that follows an error and explains it.
func follows(line string) bool {
	line = short(line)
	return mayFollow(line) && trailing.MatchString(line)
}
