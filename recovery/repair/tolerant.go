package repair

import (
	"errors"
	"slices"
	"strings"
)

// The repairs of the tolerant parser, as named in events.
const (
	ruleTrailingComma  = "trailing_comma"
	ruleSingleQuotes   = "single_quotes"
	ruleSmartQuotes    = "smart_quotes"
	ruleLiterals       = "python_literals"
	ruleKeys           = "unquoted_keys"
	ruleComments       = "comments"
	ruleControls       = "control_characters"
	ruleEscapes        = "invalid_escapes"
	ruleBrackets       = "missing_brackets"
	ruleExtraBrackets  = "extra_brackets"
	ruleDuplicateNames = "repeated_names"
	ruleComma          = "missing_comma"
	ruleColon          = "missing_colon"
	ruleSpaces         = "foreign_spaces"
)

// The errors of the tolerant parser.
var (
	errSyntax    = errors.New("not JSON")
	errAmbiguous = errors.New("JSON that may mean two things")
	errOpen      = errors.New("JSON that ends too early")
	errTooDeep   = errors.New("JSON that is nested too deep")
)

// parser reads JSON as models write it, in time linear in the text. It accepts and
// repairs these deviations, because each has only one meaning:
//
//   - commas before a closing bracket
//   - strings in single or typographic quotes that end where a string must end
//   - True, False, None
//   - names without quotes
//   - comments
//   - control characters in strings, which stay what they are
//   - backslashes that escape nothing, which stay backslashes
//   - missing closing brackets, if canClose and nothing but brackets is missing
//   - up to three extra closing brackets behind the value
//   - names that occur twice with equal values
//   - a missing comma or colon, if space and the next name, object or string follow
//
// It never supplies a quote or a value.
type parser struct {
	in          string
	i           int
	depth       int
	canClose    bool     // missing brackets may be added
	rules       []string // the repairs, each once, in order
	endedInside bool     // the text ended inside a value
	gemma       bool     // strings are enclosed in gemmaQuote
}

// readTolerant reads a text that consists of one value.
func readTolerant(in string, close bool) (v *value, rules []string, err error) {
	r := parser{in: in, canClose: close}
	r.i = len(in) - len(strings.TrimPrefix(in, "\ufeff"))
	if v, err = r.value(); err != nil {
		return nil, nil, err
	}
	if err = r.readTrailing(); err != nil {
		return nil, nil, err
	}
	return v, r.rules, nil
}

// readPrefix reads the value at the beginning of the text, without adding brackets, so that
// its end is certain. It returns the offset of the end; after an error, how far it read.
func readPrefix(in string) (v *value, rules []string, end int, err error) {
	r := parser{in: in}
	if v, err = r.value(); err != nil && r.endedInside {
		r.i = len(in)
	}
	return v, r.rules, r.i, err
}

// readTrailing accepts what may follow the value: space and extra closing brackets.
func (r *parser) readTrailing() error {
	stray := 0
	for r.skipSpace(); r.i < len(r.in); r.skipSpace() {
		if c := r.in[r.i]; c != '}' && c != ']' || stray == 3 {
			return errSyntax
		}
		stray++
		r.i++
	}
	if stray > 0 {
		if r.has(ruleBrackets) {
			return errAmbiguous
		}
		r.addRule(ruleExtraBrackets)
	}
	return nil
}

func (r *parser) has(rule string) bool { return slices.Contains(r.rules, rule) }

func (r *parser) addRule(rule string) {
	if !r.has(rule) {
		r.rules = append(r.rules, rule)
	}
}

// skipSpace skips white space and comments. A comment without an end stays, and nothing can begin with it.
func (r *parser) skipSpace() {
	for r.i < len(r.in) {
		switch c := r.in[r.i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			r.i++
		case c == '#':
			r.skipLine()
		case c == '/' && strings.HasPrefix(r.in[r.i:], "//"):
			r.skipLine()
		case c == '/' && strings.HasPrefix(r.in[r.i:], "/*"):
			end := strings.Index(r.in[r.i+2:], "*/")
			if end < 0 {
				return
			}
			r.addRule(ruleComments)
			r.i += end + 4
		case strings.HasPrefix(r.in[r.i:], "\u00a0"), strings.HasPrefix(r.in[r.i:], `\n`):
			r.addRule(ruleSpaces)
			r.i += len(`\n`) // both have two bytes
		default:
			return
		}
	}
}

func (r *parser) skipLine() {
	r.addRule(ruleComments)
	if end := strings.IndexByte(r.in[r.i:], '\n'); end >= 0 {
		r.i += end
	} else {
		r.i = len(r.in)
	}
}

func (r *parser) value() (*value, error) {
	if r.skipSpace(); r.i >= len(r.in) {
		return nil, errOpen
	}
	switch c := r.in[r.i]; {
	case c == '{':
		return r.object()
	case c == '[':
		return r.array()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	if q, ok := r.quoteAt(); ok {
		lit, err := r.stringAt(q)
		if err != nil {
			return nil, err
		}
		return &value{kind: kindString, text: lit}, nil
	}
	return r.literal()
}

func (r *parser) enter() error {
	if r.depth++; r.depth > maxDepth {
		return errTooDeep
	}
	r.i++
	return nil
}

// nextElement skips the separator in front of the next member or item and returns true; at the
// end it skips the closing bracket and returns false. joins reports whether another
// element may begin here without a comma.
func (r *parser) nextElement(first bool, end byte, joins func() bool) (bool, error) {
	r.skipSpace()
	if !first { // after a value
		switch {
		case r.i >= len(r.in): // only brackets may be missing, and a number may be incomplete
			if r.endedInside = true; !r.canClose || r.in[r.i-1] >= '0' && r.in[r.i-1] <= '9' {
				return false, errOpen
			}
			r.addRule(ruleBrackets)
			return false, nil
		case r.in[r.i] != end && (r.in[r.i] == ']' || r.in[r.i] == '}') && r.depth > 1 && r.canClose:
			r.addRule(ruleBrackets) // an outer value closes
			return false, nil
		case r.in[r.i] == ',':
			r.i++
			if r.skipSpace(); r.i < len(r.in) && r.in[r.i] == end {
				r.addRule(ruleTrailingComma)
			}
		case r.in[r.i] != end && r.afterSpace() && joins():
			r.addRule(ruleComma)
		case r.in[r.i] != end:
			return false, errSyntax
		}
	}
	if r.i >= len(r.in) {
		return false, r.endedEarly()
	}
	if r.in[r.i] == end {
		r.i++
		return false, nil
	}
	return true, nil
}

func (r *parser) object() (*value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	v := &value{kind: kindObject}
	seen := map[string]int{}
	for first := true; ; first = false {
		// A quote may begin a name: the colon behind it is checked below.
		more, err := r.nextElement(first, '}', func() bool { return r.in[r.i] == '"' && !r.gemma })
		if err != nil || !more {
			return v, err
		}
		name, lit, err := r.name()
		if err != nil {
			return nil, err
		}
		switch r.skipSpace(); {
		case r.i >= len(r.in):
			return nil, r.endedEarly()
		case r.in[r.i] == ':':
			r.i++
		case r.in[r.i] == '"' && r.afterSpace() && !r.has(ruleComma):
			r.addRule(ruleColon)
		default:
			return nil, errSyntax
		}
		val, err := r.value()
		if err != nil {
			return nil, err
		}
		if at, ok := seen[name]; ok {
			if !v.members[at].val.equal(val) {
				return nil, errAmbiguous
			}
			r.addRule(ruleDuplicateNames)
			continue
		}
		seen[name] = len(v.members)
		v.members = append(v.members, member{name, lit, val})
	}
}

func (r *parser) array() (*value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	v := &value{kind: kindArray}
	for first := true; ; first = false {
		more, err := r.nextElement(first, ']', func() bool { return r.in[r.i] == '{' && v.items[len(v.items)-1].kind == kindObject })
		if err != nil || !more {
			return v, err
		}
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
}

// afterSpace reports whether white space precedes the current offset.
func (r *parser) afterSpace() bool {
	return r.i > 0 && strings.IndexByte(whitespace, r.in[r.i-1]) >= 0
}

func (r *parser) endedEarly() error {
	r.endedInside = true
	return errOpen
}
