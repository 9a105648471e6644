package recovery

import (
	"bytes"
	"unicode/utf8"
)

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

// thoughtTags are the tags between which models write thoughts into their text.
var thoughtTags = [...][2][]byte{{[]byte("<think>"), []byte("</think>")}, {[]byte("<thinking>"), []byte("</thinking>")}}

// WithoutThoughts returns an answer's text without thoughts before it and without blanks around it. Thoughts begin the text
// in a tag, or stand before a closing tag on a line of its own, since the templates of DeepSeek's and Qwen's models
// put the opening tag into the prompt. Thoughts without an end stay. The result is a part of text.
func WithoutThoughts(text []byte) []byte {
	text = bytes.TrimSpace(text)
	for _, tag := range thoughtTags {
		before, after, ended := bytes.Cut(text, tag[1])
		if !ended {
			continue
		}
		ownLine := bytes.HasSuffix(before, []byte("\n")) && bytes.HasPrefix(after, []byte("\n")) && !bytes.Contains(before, tag[0])
		if ownLine || bytes.HasPrefix(before, tag[0]) {
			text = bytes.TrimSpace(after)
		}
	}
	return text
}
