package recovery

import "unicode/utf8"

// Head is the beginning of s, at most n bytes, not cut inside of a character.
func Head(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// Tail is the end of s, at most n bytes, not cut inside of a character.
func Tail(s string, n int) string {
	at := max(len(s)-max(n, 0), 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
