package repair

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// quotes are the characters that may begin a string, with those that end it.
var quotes = []struct {
	begin rune
	ends  string
	rule  string
}{
	{'"', "\"", ""},
	{'\'', "'", ruleSingleQuotes},
	{'“', "”", ruleSmartQuotes},
	{'‘', "’", ruleSmartQuotes},
	{'«', "»", ruleSmartQuotes},
}

// quote is the quotation mark at the place, 0 if there is none.
func (r *parser) quote() rune {
	if r.gemma {
		if strings.HasPrefix(r.in[r.i:], gemmaQuote) {
			return '<'
		}
		return 0
	}
	c, _ := utf8.DecodeRuneInString(r.in[r.i:])
	for i := range quotes {
		if quotes[i].begin == c {
			return c
		}
	}
	return 0
}

// str reads a string and returns it as JSON. A string in foreign quotes ends at
// its first closing quote, and that must be a place where a string can end:
// before a comma, a colon, a closing bracket or the end of the text. Where it
// is not, the text is ambiguous.
func (r *parser) str() (string, error) {
	if r.gemma {
		return r.marked()
	}
	begin, size := utf8.DecodeRuneInString(r.in[r.i:])
	ends := "\""
	for i := range quotes {
		if quotes[i].begin == begin {
			ends = quotes[i].ends
			if quotes[i].rule != "" {
				r.note(quotes[i].rule)
			}
		}
	}
	r.i += size
	var (
		out     strings.Builder
		escapes escapes
	)
	out.WriteByte('"')
	for {
		if r.i >= len(r.in) {
			r.open = true
			return "", errOpen
		}
		c := r.in[r.i]
		switch {
		case c == '\\':
			if r.i+1 >= len(r.in) {
				r.open = true
				return "", errOpen
			}
			n, err := escapes.read(&out, r.in[r.i:], begin)
			if err != nil {
				return "", err
			}
			r.i += n
			continue
		case c < 0x20:
			r.note(ruleControls)
			lit := transcript.String(string(rune(c)))
			out.Write(lit[1 : len(lit)-1])
			r.i++
			continue
		case c < utf8.RuneSelf && c != '"' && c != '\'':
			out.WriteByte(c)
			r.i++
			continue
		}
		ch, n := utf8.DecodeRuneInString(r.in[r.i:])
		if ch != utf8.RuneError && strings.ContainsRune(ends, ch) {
			r.i += n
			break
		}
		if ch == '"' {
			out.WriteByte('\\')
		}
		out.WriteString(r.in[r.i : r.i+n])
		r.i += n
	}
	if escapes.apostrophe && begin == '"' {
		r.note(ruleEscapes)
	}
	if escapes.invalid {
		if escapes.special {
			return "", errAmbiguous
		}
		r.note(ruleEscapes)
	}
	out.WriteByte('"')
	return out.String(), nil
}

// marked reads a string of Gemma.
func (r *parser) marked() (string, error) {
	rest := r.in[r.i+len(gemmaQuote):]
	n := strings.Index(rest, gemmaQuote)
	if n < 0 {
		return "", r.cut()
	}
	r.i += n + 2*len(gemmaQuote)
	return stringValue(rest[:n]).text, nil
}

// escapes is what a string has of them. A string that has backslashes which
// escape nothing, and others that do, was perhaps meant without any escapes:
// in "C:\temp\data" the \t is no tab.
type escapes struct {
	invalid bool // \d
	// \' is none in JSON, but can only be an apostrophe.
	apostrophe bool
	special    bool // \t: something else than the character behind the backslash
}

// read writes the escape that in begins with as JSON, and returns its length.
func (e *escapes) read(out *strings.Builder, in string, begin rune) (n int, err error) {
	c := in[1]
	switch c {
	case '"', '\\', '/':
		out.WriteString(in[:2])
		return 2, nil
	case 'b', 'f', 'n', 'r', 't':
		e.special = true
		out.WriteString(in[:2])
		return 2, nil
	case 'u':
		if len(in) >= 6 && isHex(in[2:6]) {
			e.special = true
			out.WriteString(in[:6])
			return 6, nil
		}
		return 0, errAmbiguous // half a character
	case '\'':
		out.WriteByte('\'') // an apostrophe, as JavaScript and Python write it
		e.apostrophe = true
		return 2, nil
	case 'x', 'U', 'N', '0', '1', '2', '3', '4', '5', '6', '7', 'a', 'v':
		if begin != '"' {
			return 0, errAmbiguous // Python reads these as escapes
		}
	}
	if c < 0x20 || c >= utf8.RuneSelf {
		return 0, errAmbiguous // a continued line, a quote that is perhaps none
	}
	e.invalid = true
	out.WriteString(`\\`)
	return 1, nil // what follows is read as it stands
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }
