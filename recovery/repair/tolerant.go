package repair

import (
	"errors"
	"slices"
	"strings"
)

// The names of what the tolerant parser mended.
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

// parser reads JSON as models write it. It is linear in the text and mends
// only what has one meaning:
//
//   - commas before a closing bracket
//   - strings in single quotes, or in typographic ones, that end where a string must end
//   - True, False, None
//   - names without quotes
//   - comments
//   - control characters in strings, which stay what they are
//   - backslashes that escape nothing, which stay backslashes
//   - missing closing brackets, where close allows it and nothing but brackets is missing
//   - closing brackets too many, behind the value
//   - names that occur twice with equal values
//   - a comma or colon that is missing where space and the next name, object or string follow
//
// It never supplies a quote or a value.
type parser struct {
	in    string
	i     int
	depth int
	close bool     // missing brackets may be closed
	rules []string // what was mended, each once, in order
	open  bool     // the text ended inside a value
	gemma bool     // strings stand between Gemma's marks
}

// readTolerant reads one value, which must be all of the text.
func readTolerant(in string, close bool) (v *value, rules []string, err error) {
	r := parser{in: in, close: close}
	r.i = len(in) - len(strings.TrimPrefix(in, "\ufeff"))
	if v, err = r.value(); err != nil {
		return nil, nil, err
	}
	if err := r.rest(); err != nil {
		return nil, nil, err
	}
	return v, r.rules, nil
}

// readPrefix reads the value at the beginning of the text strictly enough that
// its end is certain, and returns where it ends, or how far it was read.
func readPrefix(in string) (v *value, rules []string, end int, err error) {
	r := parser{in: in}
	if v, err = r.value(); err != nil && r.open {
		r.i = len(in)
	}
	return v, r.rules, r.i, err
}

// rest accepts what may follow the value: space, and stray closing brackets.
func (r *parser) rest() error {
	if err := r.space(); err != nil {
		return err
	}
	stray := 0
	for r.i < len(r.in) {
		if c := r.in[r.i]; c != '}' && c != ']' || stray == 3 {
			return errSyntax
		}
		stray++
		r.i++
		if err := r.space(); err != nil {
			return err
		}
	}
	if stray > 0 {
		if r.has(ruleBrackets) {
			return errAmbiguous
		}
		r.note(ruleExtraBrackets)
	}
	return nil
}

func (r *parser) has(rule string) bool { return slices.Contains(r.rules, rule) }

func (r *parser) note(rule string) {
	if !r.has(rule) {
		r.rules = append(r.rules, rule)
	}
}

// space skips whitespace and comments.
func (r *parser) space() error {
	for r.i < len(r.in) {
		switch c := r.in[r.i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			r.i++
		case c == '#':
			r.line()
		case c == '/' && strings.HasPrefix(r.in[r.i:], "//"):
			r.line()
		case c == '/' && strings.HasPrefix(r.in[r.i:], "/*"):
			end := strings.Index(r.in[r.i+2:], "*/")
			if end < 0 {
				return errOpen
			}
			r.note(ruleComments)
			r.i += end + 4
		case strings.HasPrefix(r.in[r.i:], "\u00a0"), strings.HasPrefix(r.in[r.i:], `\n`):
			r.note(ruleSpaces)
			r.i += len(`\n`) // either has two bytes
		default:
			return nil
		}
	}
	return nil
}

func (r *parser) line() {
	r.note(ruleComments)
	if end := strings.IndexByte(r.in[r.i:], '\n'); end >= 0 {
		r.i += end
	} else {
		r.i = len(r.in)
	}
}

func (r *parser) value() (*value, error) {
	if err := r.space(); err != nil {
		return nil, err
	}
	if r.i >= len(r.in) {
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
	if q, ok := r.quotation(); ok {
		lit, err := r.str(q)
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

// more passes what stands in front of the next member or item, and reports whether
// there is one; else it passes the closing bracket. joins says that another one may
// begin where a comma is missing.
func (r *parser) more(first bool, end byte, joins func() bool) (bool, error) {
	if err := r.space(); err != nil {
		return false, err
	}
	if !first { // after a value
		switch {
		case r.i >= len(r.in): // only brackets may be missing, and a number may go on
			if r.open = true; !r.close || r.in[r.i-1] >= '0' && r.in[r.i-1] <= '9' {
				return false, errOpen
			}
			r.note(ruleBrackets)
			return false, nil
		case r.in[r.i] != end && (r.in[r.i] == ']' || r.in[r.i] == '}') && r.depth > 1 && r.close:
			r.note(ruleBrackets) // what is around closes
			return false, nil
		case r.in[r.i] == ',':
			r.i++
			if err := r.space(); err != nil {
				return false, err
			}
			if r.i < len(r.in) && r.in[r.i] == end {
				r.note(ruleTrailingComma)
			}
		case r.in[r.i] != end && r.spaced() && joins():
			r.note(ruleComma)
		case r.in[r.i] != end:
			return false, errSyntax
		}
	}
	if r.i >= len(r.in) {
		return false, r.cut()
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
		// A name may follow: its colon is demanded below.
		more, err := r.more(first, '}', func() bool { return r.in[r.i] == '"' && !r.gemma })
		if err != nil || !more {
			return v, err
		}
		name, lit, err := r.name()
		if err == nil {
			err = r.space()
		}
		if err != nil {
			return nil, err
		}
		switch {
		case r.i >= len(r.in):
			return nil, r.cut()
		case r.in[r.i] == ':':
			r.i++
		case r.in[r.i] == '"' && r.spaced() && !r.has(ruleComma):
			r.note(ruleColon)
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
			r.note(ruleDuplicateNames)
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
		more, err := r.more(first, ']', func() bool { return r.in[r.i] == '{' && v.items[len(v.items)-1].kind == kindObject })
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

// spaced reports whether space stands in front of the place.
func (r *parser) spaced() bool {
	return r.i > 0 && strings.IndexByte(blanks, r.in[r.i-1]) >= 0
}

func (r *parser) cut() error {
	r.open = true
	return errOpen
}
