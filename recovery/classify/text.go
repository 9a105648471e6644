package classify

import (
	"strings"
	"unicode"
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

// layerMark separates the texts of different layers, so that no phrase spans two.
const layerMark = '¦'

// fold prepares text for matching: lower case, every kind of quote a straight
// single one, full-width punctuation plain, white space and escape sequences
// one space each, and none beside Chinese, which some write with and some
// without.
func fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space, wide := false, false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\\' && i+1 < len(s) { // an escape that survived one decoding
			switch s[i+1] {
			case 'n', 'r', 't':
				// "\n" is white space, "\name" is not an escape we know of
				r, n = ' ', 2
			case '"', '\'', '`', '\\', '/':
				i++
				continue
			}
		}
		i += n
		switch r {
		case '"', '`', '´', '‘', '’', '‚', '“', '”', '„', '«', '»', '＂', '＇':
			r = '\''
		case '，', '、':
			r = ','
		case '。', '．':
			r = '.'
		case '：':
			r = ':'
		case '；':
			r = ';'
		case '！':
			r = '!'
		case '？':
			r = '?'
		case '（':
			r = '('
		case '）':
			r = ')'
		case '–', '—', '‑':
			r = '-'
		case '\u200b', '\ufeff', utf8.RuneError:
			continue
		}
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		han := unicode.Is(unicode.Han, r)
		if space && !wide && !han {
			b.WriteByte(' ')
		}
		space, wide = false, han
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

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

// squash makes codes comparable however they are spelt: rate_limit_error,
// RateLimitError and com.example#RateLimitError are all "ratelimit".
func squash(code string) string {
	code, _, _ = strings.Cut(code, ":http") // ThrottlingException:http://internal.amazon.com/…
	if i := strings.LastIndexAny(code, "#/"); i >= 0 {
		code = code[i+1:]
	}
	var b strings.Builder
	for _, r := range code {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	s := b.String()
	for _, suffix := range []string{"exception", "error"} {
		if t, ok := strings.CutSuffix(s, suffix); ok && len(t) >= 3 {
			return t
		}
	}
	return s
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
