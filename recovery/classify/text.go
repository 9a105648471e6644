package classify

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what is looked at. Error answers are small; what is larger is
// hostile or an echo of the request, and its beginning and end suffice.
const (
	maxBody   = 256 << 10 // bytes of a body that are parsed
	maxText   = 16 << 10  // bytes of text that rules and facts see
	maxDepth  = 24        // nesting of JSON, strings that hold JSON included
	maxNodes  = 600       // JSON values visited
	maxLayers = 48        // messages and codes kept
)

// clip bounds s to limit bytes and keeps its beginning and its end.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit*3/4, limit/4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	from := len(s) - tail
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[:head] + " … " + s[from:]
}

// plainText takes the tags off an HTML page: the title and the words of the
// body, without scripts and styles.
func plainText(page string) string {
	var b strings.Builder
	for len(page) > 0 && b.Len() < maxText {
		i := strings.IndexByte(page, '<')
		if i < 0 {
			b.WriteString(page)
			break
		}
		b.WriteString(page[:i])
		b.WriteByte(' ')
		page = page[i:]
		skip := ">"
		switch {
		case strings.HasPrefix(page, "<!--"):
			skip = "-->"
		case hasPrefixFold(page, "<script"):
			skip = "</script>"
		case hasPrefixFold(page, "<style"):
			skip = "</style>"
		}
		j := indexFold(page, skip)
		if j < 0 {
			break
		}
		page = page[j+len(skip):]
	}
	return strings.NewReplacer("&nbsp;", " ", "&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&bull;", " ").Replace(b.String())
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// indexFold is strings.Index for an ASCII needle in any case.
func indexFold(s, needle string) int {
	for i := 0; ; {
		j := strings.IndexByte(s[i:], needle[0])
		if j < 0 {
			return -1
		}
		i += j
		if hasPrefixFold(s[i:], needle) {
			return i
		}
		i++
	}
}

// looksHTML reports whether s is a page rather than a message.
func looksHTML(s string) bool {
	s = strings.TrimSpace(s)
	if len(s) > 512 {
		s = s[:512]
	}
	return indexFold(s, "<html") >= 0 || indexFold(s, "<!doctype") >= 0 || indexFold(s, "<head>") >= 0 || indexFold(s, "<body") >= 0
}

// jsonDepth returns the deepest nesting of brackets in s, strings skipped, and
// stops counting above limit. It guards the parsers, which recurse.
func jsonDepth(s []byte, limit int) int {
	depth, deepest := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > deepest {
				if deepest = depth; deepest > limit {
					return deepest
				}
			}
		case '}', ']':
			depth--
		}
	}
	return deepest
}
