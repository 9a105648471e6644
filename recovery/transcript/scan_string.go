package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Masks for eight bytes at once. A byte is special inside a string if it is
// below 0x20, a quote or a backslash. The quote (0x22) becomes 0x20 when 0x02 is
// flipped, and nothing else becomes less than 0x21 that was not below 0x20
// before, so one comparison covers both. Borrows can mark a byte falsely only
// where another one is marked rightly.
const (
	each01 = 0x0101010101010101
	each02 = 0x0202020202020202
	each21 = 0x2121212121212121
	each5c = 0x5c5c5c5c5c5c5c5c
	each80 = 0x8080808080808080
)

// special marks the special bytes of eight, at least the first of them.
func special(w uint64) uint64 {
	return (((w ^ each02) - each21) | ((w ^ each5c) - each01)) &^ w & each80
}

// StringLen returns the length of the JSON string at the beginning of raw, in bytes
// with its quotes; 0 if there is no valid string.
func StringLen(raw []byte) int {
	if !isString(raw) {
		return 0
	}
	s := scanner{data: raw}
	return max(0, s.str(1))
}

// str scans the rest of a string after its opening quote at i-1.
func (s *scanner) str(i int) int {
	if s.known {
		return s.closing(i)
	}
	d := s.data
	for i < len(d) {
		if i+8 <= len(d) {
			m := special(binary.LittleEndian.Uint64(d[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch c := d[i]; {
		case c == '\\':
			if i+1 < len(d) && short[d[i+1]] {
				i += 2
			} else if i = s.escape(i + 1); i < 0 {
				return -1
			}
		case c == '"':
			return i + 1
		case c < 0x20:
			return s.control(i)
		default:
			i++
		}
	}
	return s.cut("a string")
}

// closing is str for a string that is known to be valid.
func (s *scanner) closing(i int) int {
	d := s.data
	for {
		n := bytes.IndexByte(d[i:], '"')
		if n < 0 {
			return s.cut("a string")
		}
		end := i + n
		at := end
		for at > i && d[at-1] == '\\' {
			at--
		}
		if (end-at)&1 == 0 {
			return end + 1
		}
		i = end + 1
	}
}

// short has the bytes that are a whole escape after a backslash.
var short = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// escape scans a long escape, or a wrong one, after its backslash at i-1.
func (s *scanner) escape(i int) int {
	d := s.data
	if i >= len(d) {
		return s.cut("a string")
	}
	if d[i] == 'u' {
		for k := i + 1; k < i+5; k++ {
			if k >= len(d) {
				return s.cut("a string")
			}
			if !isHex(d[k]) {
				return s.unexpected(k, "a hexadecimal digit")
			}
		}
		return i + 5
	}
	return s.fail(CodeInvalidJSON, i, "invalid JSON: a backslash before %s at byte %d inside a string", quoteByte(d[i]), i)
}

func (s *scanner) control(i int) int {
	return s.fail(CodeInvalidJSON, i, "invalid JSON: control character 0x%02x at byte %d inside a string must be escaped", s.data[i], i)
}

func isHex(c byte) bool {
	return c-'0' < 10 || (c|0x20)-'a' < 6
}
