package repair

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// quotation is a way to write a string.
type quotation struct {
	begin, end rune
	rule       string // that it needs, if it is not JSON's
}

var quotations = [...]quotation{
	{'"', '"', ""}, {'\'', '\'', ruleSingleQuotes}, {'“', '”', ruleSmartQuotes}, {'‘', '’', ruleSmartQuotes}, {'«', '»', ruleSmartQuotes},
}

// quotation is that of the string which begins at the place; ok is false if there is none.
func (r *parser) quotation() (q quotation, ok bool) {
	if r.gemma {
		return q, strings.HasPrefix(r.in[r.i:], gemmaQuote)
	}
	c, _ := utf8.DecodeRuneInString(r.in[r.i:])
	for _, q := range quotations {
		if q.begin == c {
			return q, true
		}
	}
	return q, false
}

// str reads a string and returns it as JSON. A string in foreign quotes ends at
// its first closing quote, and that must be a place where a string can end:
// before a comma, a colon, a closing bracket or the end of the text. Where it
// is not, the text is ambiguous.
func (r *parser) str(q quotation) (string, error) {
	if r.gemma {
		return r.marked()
	}
	if q.rule != "" {
		r.note(q.rule)
	}
	r.i += utf8.RuneLen(q.begin)
	var (
		out     strings.Builder
		escapes escapes
	)
	out.WriteByte('"')
	for ended := false; !ended; {
		var err error
		if ended, err = r.character(&out, &escapes, q); err != nil {
			return "", err
		}
	}
	if escapes.apostrophe && q.begin == '"' {
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

// character writes the next character of a string as JSON, unless that ends with it.
func (r *parser) character(out *strings.Builder, e *escapes, q quotation) (ended bool, err error) {
	if r.i >= len(r.in) {
		return false, r.cut()
	}
	switch c := r.in[r.i]; {
	case c == '\\':
		if r.i+1 >= len(r.in) {
			return false, r.cut()
		}
		n, err := e.read(out, r.in[r.i:], q.begin)
		r.i += n
		return false, err
	case c < 0x20:
		r.note(ruleControls)
		lit := transcript.String(string(rune(c)))
		out.Write(lit[1 : len(lit)-1])
		r.i++
		return false, nil
	}
	ch, n := utf8.DecodeRuneInString(r.in[r.i:])
	r.i += n
	if ch == q.end {
		return true, nil
	}
	if ch == '"' {
		out.WriteByte('\\')
	}
	out.WriteString(r.in[r.i-n : r.i])
	return false, nil
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
