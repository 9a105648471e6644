package fit

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// mark returns the text that replaces removed content: JSON that no tool prints, so that
// the model and a later fitting recognise it.
func mark(summary string) string {
	return `{"` + markKey + `": true, "summary": ` + string(transcript.String(summary)) + `}`
}

const markKey = "_compressed"

// characters formats a number of characters.
func characters(n int) string { return strconv.Itoa(max(0, n)) + " characters" }

// sizeText formats the length of a text.
func sizeText(s string) string { return characters(utf8.RuneCountInString(s)) }

// bothEnds returns the beginning and the end of s, each of at most n bytes.
func bothEnds(s string, n int) string {
	if len(s) <= 2*n {
		return s
	}
	return recovery.Head(s, n) + "\n" + recovery.Tail(s, n)
}

// oneLine returns the beginning of a text on one line, of about limit bytes at most.
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
