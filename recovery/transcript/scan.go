package transcript

import "fmt"

// Valid returns nil if raw is exactly one JSON value (RFC 8259) with at most depth
// levels of nesting (DefaultDepth if depth is not positive), else an *Error. It does
// not check bytes above 0x7f for valid UTF-8. It does not allocate on success, and its
// time is linear in raw.
func Valid(raw []byte, depth int) error {
	s := scanner{data: raw, limit: depth}
	if depth <= 0 {
		s.limit = DefaultDepth
	}
	i := s.begin(0)
	if i >= 0 {
		i = s.value(i, 0)
	}
	if i < 0 || !s.end(i) {
		return s.err
	}
	return nil
}

// scanner validates JSON. Its methods take the offset where something begins
// and return the offset after it, or -1 once err is set.
type scanner struct {
	data  []byte
	limit int
	known bool // data is known to be valid: str only looks for the end of a string

	values int // JSON values so far, without the outermost
	err    *Error
}

func (s *scanner) fail(code Code, at int, format string, args ...any) int {
	s.err = &Error{Code: code, Offset: at, Message: fmt.Sprintf(format, args...)}
	return -1
}

func (s *scanner) cut(inside string) int {
	return s.fail(CodeInvalidJSON, len(s.data), "the JSON ends too early, at byte %d, inside %s", len(s.data), inside)
}

func (s *scanner) unexpected(at int, want string) int {
	if at >= len(s.data) {
		return s.fail(CodeInvalidJSON, at, "the JSON ends too early, at byte %d, where %s is expected", at, want)
	}
	return s.fail(CodeInvalidJSON, at, "invalid JSON: %s at byte %d, where %s is expected", quoteByte(s.data[at]), at, want)
}

// begin skips from i to the first byte of the outermost value.
func (s *scanner) begin(i int) int {
	i = s.space(i)
	if i == len(s.data) {
		return s.fail(CodeInvalidJSON, i, "the body is empty, where JSON is expected")
	}
	return i
}

// end reports whether nothing but whitespace follows.
func (s *scanner) end(i int) bool {
	if i = s.space(i); i < len(s.data) {
		s.fail(CodeInvalidJSON, i, "invalid JSON: %s at byte %d, after the end of the value", quoteByte(s.data[i]), i)
		return false
	}
	return true
}

// space skips whitespace.
func (s *scanner) space(i int) int {
	d := s.data
	for i < len(d) && d[i] <= ' ' && (d[i] == ' ' || d[i] == '\n' || d[i] == '\r' || d[i] == '\t') {
		i++
	}
	return i
}

// value scans the value at i, inside depth open containers.
func (s *scanner) value(i, depth int) int {
	if i < len(s.data) {
		switch s.data[i] {
		case '"':
			return s.str(i + 1)
		case '{', '[':
			return s.container(i, depth)
		}
	}
	return s.scalar(i)
}

// container scans the object or array at i.
func (s *scanner) container(i, depth int) int {
	w := s.walk(i, depth)
	for w.step() {
	}
	if s.err != nil {
		return -1
	}
	return w.i
}

// scalar scans a number, true, false or null.
func (s *scanner) scalar(i int) int {
	d := s.data
	if i >= len(d) {
		return s.unexpected(i, "a value")
	}
	word := ""
	switch c := d[i]; c {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		if c == '-' || c-'0' < 10 {
			return s.number(i)
		}
		return s.unexpected(i, "a value")
	}
	for k := 1; k < len(word); k++ {
		if i+k >= len(d) || d[i+k] != word[k] {
			return s.unexpected(i+k, word)
		}
	}
	return i + len(word)
}

func (s *scanner) number(i int) int {
	d := s.data
	digits := func() bool {
		from := i
		for i < len(d) && d[i]-'0' < 10 {
			i++
		}
		return i > from
	}
	if d[i] == '-' {
		i++
	}
	if i < len(d) && d[i] == '0' {
		i++
	} else if !digits() {
		return s.unexpected(i, "a digit")
	}
	if i < len(d) && d[i] == '.' {
		i++
		if !digits() {
			return s.unexpected(i, "a digit")
		}
	}
	if i < len(d) && d[i]|0x20 == 'e' {
		i++
		if i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		if !digits() {
			return s.unexpected(i, "a digit")
		}
	}
	return i
}
