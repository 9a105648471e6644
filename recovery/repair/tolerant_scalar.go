package repair

import (
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// word returns the identifier at the current offset, "" if there is none.
func (r *parser) word() string {
	i := r.i
	for i < len(r.in) {
		c := r.in[i]
		if c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > r.i && (c >= '0' && c <= '9' || c == '-') {
			i++
			continue
		}
		break
	}
	return r.in[r.i:i]
}

// name reads a name and returns it decoded and as JSON, which is "" if it had no quotes.
func (r *parser) name() (name, lit string, err error) {
	if q, ok := r.quoteAt(); ok {
		if lit, err = r.stringAt(q); err != nil {
			return "", "", err
		}
		return (&value{kind: kindString, text: lit}).str(), lit, nil
	}
	word := r.word()
	if word == "" {
		return "", "", errSyntax
	}
	r.i += len(word)
	r.addRule(ruleKeys)
	return word, "", nil
}

func (r *parser) literal() (*value, error) {
	word := r.word()
	r.i += len(word)
	switch word {
	case "true", "false":
		return &value{kind: kindBool, text: word}, nil
	case "null":
		return &value{kind: kindNull, text: word}, nil
	case "True", "False":
		r.addRule(ruleLiterals)
		return &value{kind: kindBool, text: strings.ToLower(word)}, nil
	case "None":
		r.addRule(ruleLiterals)
		return &value{kind: kindNull, text: "null"}, nil
	}
	if r.i >= len(r.in) && word != "" {
		r.endedInside = true
	}
	return nil, errSyntax
}

func (r *parser) number() (*value, error) {
	from := r.i
	for r.i < len(r.in) {
		c := r.in[r.i]
		if c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c|0x20 == 'e' {
			r.i++
			continue
		}
		break
	}
	text := r.in[from:r.i]
	if !isNumber(text) {
		return nil, errSyntax
	}
	// 12_000 and 5px are not numbers.
	if r.i < len(r.in) {
		if c, _ := utf8.DecodeRuneInString(r.in[r.i:]); c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '%' {
			return nil, errSyntax
		}
	}
	return &value{kind: kindNumber, text: text}, nil
}

// isNumber reports whether s is a JSON number.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && s[len(s)-1] > ' ' && transcript.Valid([]byte(s), 1) == nil
}
