package repair

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// quoteStyle is a pair of quotation marks.
type quoteStyle struct {
	begin, end rune
	rule       string // the repair, empty for JSON's own quotes
}

var quoteStyles = [...]quoteStyle{
	{'"', '"', ""}, {'\'', '\'', ruleSingleQuotes}, {'“', '”', ruleSmartQuotes}, {'‘', '’', ruleSmartQuotes}, {'«', '»', ruleSmartQuotes},
}

// quoteAt returns the quotation marks of the string at the current offset; ok is false if there is none.
func (r *parser) quoteAt() (q quoteStyle, ok bool) {
	if r.gemma {
		return q, strings.HasPrefix(r.in[r.i:], gemmaQuote)
	}
	c, _ := utf8.DecodeRuneInString(r.in[r.i:])
	for _, q := range quoteStyles {
		if q.begin == c {
			return q, true
		}
	}
	return q, false
}

// stringAt reads a string and returns it as JSON. It ends at the first closing quote
// that is not escaped; a caller refuses the text if no string can end there.
func (r *parser) stringAt(q quoteStyle) (string, error) {
	if r.gemma {
		return r.gemmaString()
	}
	if q.rule != "" {
		r.addRule(q.rule)
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
		r.addRule(ruleEscapes)
	}
	if escapes.invalid {
		if escapes.special {
			return "", errAmbiguous
		}
		r.addRule(ruleEscapes)
	}
	out.WriteByte('"')
	return out.String(), nil
}

// character writes the next character of a string as JSON. ended is true, and nothing is
// written, if it is the closing quote.
func (r *parser) character(out *strings.Builder, e *escapes, q quoteStyle) (ended bool, err error) {
	if r.i >= len(r.in) {
		return false, r.endedEarly()
	}
	switch c := r.in[r.i]; {
	case c == '\\':
		if r.i+1 >= len(r.in) {
			return false, r.endedEarly()
		}
		n, err := e.read(out, r.in[r.i:], q.begin)
		r.i += n
		return false, err
	case c < 0x20:
		r.addRule(ruleControls)
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

// gemmaString reads a string between two gemmaQuotes.
func (r *parser) gemmaString() (string, error) {
	rest := r.in[r.i+len(gemmaQuote):]
	n := strings.Index(rest, gemmaQuote)
	if n < 0 {
		return "", r.endedEarly()
	}
	r.i += n + 2*len(gemmaQuote)
	return stringValue(rest[:n]).text, nil
}

// escapes says which escapes a string contains. If some backslashes escape nothing and
// others do, the string may be meant without any escapes: in "C:\temp\data" the \t
// is no tab.
type escapes struct {
	invalid    bool // \d
	apostrophe bool // \', which JSON does not know
	special    bool // \t: an escape that does not stand for the character behind the backslash
}

// read writes the escape at the beginning of in as JSON, and returns how much it read.
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
		return 0, errAmbiguous // an incomplete escape
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
		return 0, errAmbiguous // a continued line, or an escaped typographic quote
	}
	e.invalid = true
	out.WriteString(`\\`)
	return 1, nil // the character behind the backslash is read as usual
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }
