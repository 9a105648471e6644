package trajectory

import "unicode/utf8"

// Shorten is a text of at most n runes: what is cut off is told by an ellipsis.
func Shorten(s string, n int) string {
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
