package fit

import (
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// minPaste is the size in bytes from which on a part of a message counts as pasted.
const minPaste = 1500

// maxOwnWords is how many bytes at each end of a message count as the user's own words
// if the whole text is prose.
const maxOwnWords = 2000

// findPastes returns the parts that a user pasted into a message: fenced blocks, and
// paragraphs that are not prose. With prose set, the middle of a long text that is all
// prose counts too; callers leave it unset for the task, which may be long itself.
func findPastes(text string, prose bool) (list []transcript.Span) {
	add := func(start, end int) {
		if n := len(list); n > 0 && strings.TrimSpace(text[list[n-1].End:start]) == "" {
			list[n-1].End = end
			return
		}
		list = append(list, transcript.Span{Start: start, End: end})
	}
	fenced, start := false, 0
	for at := 0; at < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := strings.TrimSpace(text[at:end])
		switch {
		case strings.HasPrefix(line, "```"):
			if fenced = !fenced; fenced {
				start = end
			} else {
				add(start, at)
			}
		case !fenced && line != "" && !looksTyped(line):
			add(at, end)
		}
		at = end
	}
	if fenced {
		add(start, len(text))
	}
	out := list[:0]
	for _, s := range list {
		if s.End-s.Start >= minPaste {
			out = append(out, s)
		}
	}
	if prose && len(out) == 0 && len(text) > 2*maxOwnWords+minPaste {
		out = append(out, transcript.Span{Start: len(recovery.Head(text, maxOwnWords)), End: len(text) - len(recovery.Tail(text, maxOwnWords))})
	}
	return out
}

// looksTyped reports whether a line reads as typed by a person: mostly words. Scripts from Thai on, which include the
// East Asian ones, have no spaces between words: there each letter counts as one.
func looksTyped(line string) bool {
	line = recovery.Head(line, 2000)
	words := len(strings.Fields(line))
	plain, all := 0, 0
	for _, r := range line {
		if r >= 0x0e00 && unicode.IsLetter(r) {
			words++
		}
		if all++; r == ' ' || r == ',' || r == '\'' || r == '?' || r > 127 || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			plain++
		}
	}
	return 10*plain >= 9*all && (words > 2 || strings.ContainsAny(line, ".?!:"))
}

// shortenPastes shortens the pasted parts of a message to about room bytes in all.
func (e excerpts) shortenPastes(text string, room int, prose bool) (out string, ok bool) {
	list := findPastes(text, prose)
	all := 0
	for _, s := range list {
		all += s.End - s.Start
	}
	var b strings.Builder
	at := 0
	for _, s := range list {
		part := text[s.Start:s.End]
		short, smaller := e.shorten("Text that the user pasted here, shortened: ", part, int(float64(room)*float64(len(part))/float64(all)))
		if !smaller {
			continue
		}
		b.WriteString(text[at:s.Start])
		b.WriteString(short)
		if strings.HasSuffix(part, "\n") {
			b.WriteByte('\n')
		}
		at = s.End
	}
	b.WriteString(text[at:])
	return b.String(), at > 0 && b.Len() < len(text)
}
