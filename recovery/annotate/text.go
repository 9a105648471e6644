package annotate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxQuoted limits a quoted path, name or command, in runes.
const maxQuoted = 120

// marks matches text that looks like another speaker or a note of the gateway.
var marks = recovery.NewPattern(`(?i)\[(\s*/?\s*(?:gateway|inst|sys|system|user|assistant|developer|tool|human|ai)\b)`)

// oneLine makes a text safe to quote: one line of at most n runes, without control characters, terminal escapes,
// code fences, tags and role markers. It is idempotent.
func oneLine(s string, n int) string {
	if len(s) > 16*n {
		s = s[:16*n] // four bytes per rune, and room for what is removed
	}
	s = trajectory.WithoutEscapes(s)
	var b strings.Builder
	count, space, more, before := 0, false, false, rune(0)
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp):
			continue
		}
		if space {
			count++
		}
		if count++; count > n {
			more = true
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		switch r {
		case '`':
			r = '\''
		case '<':
			r = '‹'
		case '>':
			if before == '>' || before == '<' { // a single >, as in ->, closes nothing
				r = '›'
			}
		}
		before = r
		b.WriteRune(r)
	}
	out := b.String()
	if strings.IndexByte(out, '[') >= 0 {
		out = marks.ReplaceAllString(out, "($1")
	}
	if more {
		_, last := utf8.DecodeLastRuneInString(out)
		return out[:len(out)-last] + "…"
	}
	return out
}

// quoted quotes a name, a path or a command as data; it returns "" for an empty text.
func quoted(s string) string {
	if s = oneLine(s, maxQuoted); s == "" {
		return ""
	}
	return "`" + s + "`"
}

// listed joins up to max quoted names, with last before the last one; "" for none.
func listed(names []string, max int, last string) string {
	var out []string
	for _, n := range names {
		if len(out) == max {
			break
		}
		if q := quoted(n); q != "" {
			out = append(out, q)
		}
	}
	switch {
	case len(out) == 0:
		return ""
	case len(names) > max:
		return strings.Join(out, ", ") + ", …"
	case len(out) == 1:
		return out[0]
	}
	return strings.Join(out[:len(out)-1], ", ") + " " + last + " " + out[len(out)-1]
}
