package trajectory

import (
	"strings"
	"unicode/utf8"
)

// Shorten is a text of at most n runes: what is cut off is told by an ellipsis.
// Bytes that are no UTF-8 are told by its replacement character.
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
