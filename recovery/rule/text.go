package rule

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ascii is the plain form of quotes and punctuation.
var ascii = map[rune]rune{
	'´': '\'', '‘': '\'', '’': '\'', '‚': '\'', '“': '\'', '”': '\'', '„': '\'', '«': '\'', '»': '\'', '＂': '\'', '＇': '\'',
	'，': ',', '、': ',', '。': '.', '．': '.', '：': ':', '；': ';', '！': '!', '？': '?', '（': '(', '）': ')', '–': '-', '—': '-', '‑': '-',
}

// Fold returns text in a form for matching. It lowers the case, replaces every kind of quote by a straight single quote and
// full-width punctuation by ASCII, and replaces each run of white space and escape sequences by one space. It removes
// spaces next to Chinese characters, since some authors write them and some do not.
func Fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	space, wide := false, false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\\' && i+1 < len(s) { // an escape that survived one decoding
			switch s[i+1] {
			case 'n', 'r', 't':
				// \n, \r and \t count as white space
				r, n = ' ', 2
			case '"', '\'', '`', '\\', '/':
				i++
				continue
			}
		}
		i += n
		if r == '"' || r == '`' {
			r = '\''
		} else if r >= utf8.RuneSelf {
			if plain, ok := ascii[r]; ok {
				r = plain
			}
		}
		if r == '\u200b' || r == '\ufeff' || r == utf8.RuneError {
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

// Code returns a code in a form that is equal for all its spellings: rate_limit_error, RateLimitError and
// com.example#RateLimitError all become "ratelimit".
func Code(code string) string {
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
