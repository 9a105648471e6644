package fit

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// mark is the text that takes the place of what was removed: JSON that no tool
// prints and no model should imitate.
func mark(summary string) string {
	return `{"_compressed": true, "summary": ` + string(transcript.String(summary)) + `}`
}

// cutBefore is the beginning of s, at most n bytes, not inside a character.
func cutBefore(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// cutAfter is the first place at or after n that is not inside a character.
func cutAfter(s string, n int) int {
	n = max(n, 0)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return min(n, len(s))
}

// beginning is the beginning of s, at most n bytes, up to the end of a line where
// one ends in the second half of it.
func beginning(s string, n int) string {
	h := cutBefore(s, n)
	if len(h) == len(s) {
		return h
	}
	if i := strings.LastIndexByte(h, '\n'); i >= n/2 {
		return h[:i+1]
	}
	return h
}

// ending is the end of s, like beginning.
func ending(s string, n int) string {
	if n >= len(s) {
		return s
	}
	t := s[cutAfter(s, len(s)-n):]
	if i := strings.IndexByte(t, '\n'); i >= 0 && i < n/2 {
		return t[i+1:]
	}
	return t
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// size says how long a text is, for a reader.
func size(s string) string {
	chars, lines := utf8.RuneCountInString(s), countLines(s)
	if lines < 2 {
		return strconv.Itoa(chars) + " characters"
	}
	return strconv.Itoa(chars) + " characters in " + strconv.Itoa(lines) + " lines"
}

// The lines that name errors in what is removed.
const (
	maxErrorLines = 6
	maxErrorLine  = 160
	maxSearched   = 128 << 10 // bytes at each end
)

// errorLines are lines of s that name errors, without repetitions: the first
// ones and the last, which usually says most.
func errorLines(s string) (out []string) {
	if len(s) > 2*maxSearched {
		s = s[:maxSearched] + "\n" + s[cutAfter(s, len(s)-maxSearched):]
	}
	seen := map[string]bool{}
	last := ""
	for line := range strings.Lines(s) {
		if len(line) > 4096 {
			line = cutBefore(line, 4096)
		}
		if line = strings.TrimSpace(line); line == "" || !errorLine.MatchString(line) {
			continue
		}
		if line = cutBefore(line, maxErrorLine); seen[line] {
			continue
		}
		if len(seen) < 4096 {
			seen[line] = true
		}
		if len(out) < maxErrorLines-1 {
			out = append(out, line)
		} else {
			last = line
		}
	}
	if last != "" {
		out = append(out, last)
	}
	return out
}

// shortened is the text in place of s that keeps its first and last bytes and
// the lines between that name errors; ok is false where that saves nothing.
func shortened(what, s string, head, tail int) (text string, ok bool) {
	if head+tail >= len(s) {
		return "", false
	}
	first := beginning(s, head)
	rest := s[len(first):]
	last := ending(rest, tail)
	middle := rest[:len(rest)-len(last)]
	var b strings.Builder
	b.WriteString(what)
	b.WriteString(", shortened. It had ")
	b.WriteString(size(s))
	b.WriteString("; ")
	b.WriteString(size(middle))
	b.WriteString(" were removed from its middle.")
	part := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			b.WriteString("\n[" + title + "]\n" + text)
		}
	}
	part("beginning", first)
	part("lines of the removed part that name errors", strings.Join(errorLines(middle), "\n"))
	part("end", last)
	text = mark(b.String())
	return text, len(text) < len(s)
}
