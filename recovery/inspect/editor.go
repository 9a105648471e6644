package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// editRefusals are the first words of an editor that did not apply an edit.
var editRefusals = recovery.NewPattern(`(?i)^(?:error: |edit failed: |\[?error\]?:? )*(?:your proposed edit has introduced new syntax error|no replacement was performed|could not find (?:the )?(?:exact )?(?:text|old_?str(?:ing)?|old_?text|search|match)\b|(?:the )?(?:old_?str(?:ing)?|oldtext|old_?text|string to replace|search (?:text|block|string))\b.{0,80}(?:not found|did not appear|does not appear|was not found|must be unique|appears multiple|no match)|string to replace not found|failed to edit\b|no changes to make\b|old_?str(?:ing)? and new_?str(?:ing)? (?:must (?:be different|differ|not)|are (?:exactly |the )*(?:same|identical|equal))|the search block:?$|\w+ verification failed: failed to find|guard mismatch|found multiple (?:exact )?matches for|found \d+ (?:matches|occurrences) (?:of|for) (?:the )?(?:text|string|old)|(?:the )?(?:search|replace|diff|patch|hunk|edit)\b.{0,60}(?:failed to (?:match|apply)|does not match|did not match|no(?:t an)? exact match|could not be applied)|failed to (?:apply|find expected lines|match)|# \d+ SEARCH/REPLACE blocks? failed to match|unable to apply diff|file has (?:not been read|been (?:unexpectedly )?modified since)|no changes (?:made|to apply))`)

// syntaxCodes are the linter's codes for text that does not parse, as SWE-agent prints them.
var syntaxCodes = recovery.NewPattern(`\b(?:E999|E901|E902)\b|\b(?:SyntaxError|IndentationError|TabError)\b`)

// patchWords are those of editors that take a patch or blocks.
var patchWords = recovery.NewPattern(`\b(?:patch|hunk|diff|blocks?|verification|apply|lines)\b|apply_patch`)

// notInFile says of the lines that a patch or a block expects, as of a text to replace,
// that the file does not have them; a patch that does not parse is another thing.
var notInFile = recovery.NewPattern(`^the search block:?$|\bfailed to find expected lines\b|\bsearch(?:/replace)? blocks?\b.{0,80}\b(?:failed to match|does not match|did not match|not found)\b`)

// editRefused reads what editors say about an edit that they did not apply.
// The text to replace was a wrong argument then. Of a patch that does not parse it is a
// matter of opinion.
func (v *view) editRefused() finding {
	if len(v.lines) == 0 || v.outcome == succeeded || v.kind == trajectory.Reader || !editRefusals.MatchString(short(v.lines[0])) {
		return finding{}
	}
	f := finding{true, recovery.InvalidArguments, doubtful, "edit-refused", v.lines[0]}
	switch low := strings.ToLower(v.lines[0]); {
	case strings.HasPrefix(low, "file has "):
		f.category = recovery.CategoryNone // the editor's own rules of order
		return f
	case !strings.Contains(low, "syntax error"):
		if !patchWords.MatchString(low) || notInFile.MatchString(low) {
			f.confidence = worded
		}
		return f
	}
	f.category = recovery.CategoryNone // the new text has another fault, until its code is read
	for _, line := range v.lines[1:min(len(v.lines), 12)] {
		if strings.HasPrefix(line, "This is how") {
			break
		}
		if syntaxCodes.MatchString(line) {
			return finding{true, recovery.SyntaxError, certain, "edit-syntax", line}
		}
	}
	return f
}
