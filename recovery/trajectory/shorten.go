package trajectory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// Shorten returns a text of at most n runes, with an ellipsis in place of what it cuts off. Invalid UTF-8
// becomes U+FFFD.
func Shorten(s string, n int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count++; count == n {
			return s[:i] + "…"
		}
	}
	return s
}

// OneLine returns a text on one line of at most n runes, without terminal escapes, control characters and invisible
// ones. It is idempotent.
func OneLine(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, WithoutEscapes(s[:min(len(s), 16*n)])) // four bytes per rune, and room for what is removed
	return Shorten(strings.Join(strings.Fields(s), " "), n)
}

// Ends returns at most head bytes from the beginning and tail bytes from the end of a text, in whole lines if it
// has several.
func Ends(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	first, last := s[:head], s[len(s)-tail:]
	if i := strings.LastIndexByte(first, '\n'); i >= 0 {
		first = first[:i+1]
	}
	if i := strings.IndexByte(last, '\n'); i >= 0 {
		last = last[i+1:]
	}
	return first + "\n" + last
}

var terminal = recovery.NewPattern("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]{0,256}(?:\x07|\x1b\\\\)|[()][A-B0-2]|[=>78cDEHM])")

// WithoutEscapes returns a text without colours and other terminal escapes.
func WithoutEscapes(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	return terminal.ReplaceAllString(s, "")
}
