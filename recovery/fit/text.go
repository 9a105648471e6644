package fit

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// mark is the text that takes the place of what was removed: JSON that no tool
// prints and no model should imitate.
func mark(summary string) string {
	return `{"` + markKey + `": true, "summary": ` + string(transcript.String(summary)) + `}`
}

const markKey = "_compressed"

// characters is a number of them, for a reader.
func characters(n int) string { return strconv.Itoa(max(0, n)) + " characters" }

// sizeText says how long a text is, for a reader.
func sizeText(s string) string { return characters(utf8.RuneCountInString(s)) }

// bothEnds is the beginning and the end of s, each of at most n bytes.
func bothEnds(s string, n int) string {
	if len(s) <= 2*n {
		return s
	}
	return recovery.Head(s, n) + "\n" + recovery.Tail(s, n)
}

// oneLine is the beginning of a text on one line.
func oneLine(s string, limit int) string {
	if len(s) > 4*limit {
		s = recovery.Head(s, 4*limit)
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = recovery.Head(s, limit) + "…"
	}
	return s
}
