package recovery

import "unicode/utf8"

// Head returns at most n bytes from the beginning of s, without cutting a character.
func Head(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Tail returns at most n bytes from the end of s, without cutting a character.
func Tail(s string, n int) string {
	at := max(len(s)-max(n, 0), 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
