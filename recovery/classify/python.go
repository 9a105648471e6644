package classify

import (
	"bytes"
	"strings"
)

// fromPython translates what Python prints for a dict or a list that begins at
// s[i] into JSON, and returns where it ends; 0 means that none begins there.
// SDKs and proxies send error bodies on in that form.
func fromPython(s string, i int) (string, int) {
	if !pythonic(s[i:]) {
		return "", 0
	}
	b := make([]byte, 0, len(s)-i)
	depth := 0
	for i < len(s) && depth <= maxDepth {
		switch c := s[i]; c {
		case '{', '[', '(':
			depth++
			b = append(b, bracket(c))
			i++
		case '}', ']', ')':
			b = bytes.TrimSuffix(bytes.TrimRight(b, " "), []byte(",")) // of a tuple of one
			b = append(b, bracket(c))
			i++
			if depth--; depth == 0 {
				return string(b), i
			}
		case '\'', '"':
			if b, i = pythonString(b, s, i); i == 0 {
				return "", 0
			}
		case ' ', '\t', '\r', '\n', ',', ':', '-', '+', '.':
			b = append(b, c)
			i++
		default:
			j := i
			for j < len(s) && (isWord(s[j]|0x20) || isWord(s[j]) || s[j] == '.') {
				j++
			}
			switch word := s[i:j]; word {
			case "":
				return "", 0
			case "None":
				b = append(b, "null"...)
			case "True":
				b = append(b, "true"...)
			case "False":
				b = append(b, "false"...)
			case "b": // the prefix of bytes
			default:
				b = append(b, word...)
			}
			i = j
		}
	}
	return "", 0
}

// pythonic reports whether a bracketed value's first string is quoted as
// Python quotes.
func pythonic(s string) bool {
	t := strings.TrimLeft(s, "[{( ")
	return len(t) < len(s) && strings.HasPrefix(t, "'")
}

// pythonString appends the string literal at s[i] as JSON and returns where it
// ends, 0 if it does not.
func pythonString(b []byte, s string, i int) (out []byte, end int) {
	quote := s[i]
	b = append(b, '"')
	for j := i + 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == quote:
			return append(b, '"'), j + 1
		case c == '"':
			b = append(b, '\\', '"')
		case c < ' ':
			b = append(b, ' ')
		case c == '\\' && j+1 < len(s):
			j++
			switch s[j] {
			case 'n', 'r', 't', '"', '\\', '/', 'b', 'f', 'u':
				b = append(b, '\\', s[j])
			case '\'':
				b = append(b, '\'')
			default:
				b = append(b, '\\', '\\', s[j])
			}
		default:
			b = append(b, c)
		}
	}
	return b, 0
}

// bracket is JSON's for one of Python's: tuples become arrays.
func bracket(c byte) byte {
	switch c {
	case '(':
		return '['
	case ')':
		return ']'
	}
	return c
}
