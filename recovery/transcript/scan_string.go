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
	each22 = 0x2222222222222222
	each5c = 0x5c5c5c5c5c5c5c5c
	each60 = 0x6060606060606060
	each7f = 0x7f7f7f7f7f7f7f7f
	each80 = 0x8080808080808080
	eachN  = 'n' * each01
	eachT  = 't' * each01
)

// special marks the special ones of eight bytes, at least the first of them.
func special(w uint64) uint64 {
	return (((w ^ each02) - each21) | ((w ^ each5c) - each01)) &^ w & each80
}

// StringLen is how many bytes the JSON string takes that raw begins with, its
// quotes among them; 0 if there is none, or none that is valid.
func StringLen(raw []byte) int {
	if !isString(raw) {
		return 0
	}
	s := scanner{data: raw}
	return max(0, s.str(1))
}

// str scans the rest of a string after its opening quote at i-1. Names and ids are
// short and have no escapes.
func (s *scanner) str(i int) int {
	d := s.data
	for at := i; at <= i+16 && at+8 <= len(d); at += 8 {
		if m := special(binary.LittleEndian.Uint64(d[at:])); m != 0 {
			if at += bits.TrailingZeros64(m) >> 3; d[at] == '"' {
				return at + 1
			}
			break
		}
	}
	if s.known {
		return s.closing(i)
	}
	return s.long(i)
}

// long is str of any string. Four words at a time are passed if nothing in them is
// special, else judged one by one. It does not jump from one escape to the next:
// source code has one in ten bytes, and each jump would be a wrong guess of the
// processor's.
func (s *scanner) long(i int) int {
	d := s.data
	var escaped, carry uint64 // carry marks the byte at i if there is a backslash before it
	for i+32 <= len(d) {
		b := d[i : i+32 : i+32]
		w0 := binary.LittleEndian.Uint64(b)
		w1 := binary.LittleEndian.Uint64(b[8:])
		w2 := binary.LittleEndian.Uint64(b[16:])
		w3 := binary.LittleEndian.Uint64(b[24:])
		special := (((w0^each02)-each21)|((w0^each5c)-each01))&^w0 | (((w1^each02)-each21)|((w1^each5c)-each01))&^w1 |
			(((w2^each02)-each21)|((w2^each5c)-each01))&^w2 | (((w3^each02)-each21)|((w3^each5c)-each01))&^w3
		if special&each80 == 0 && carry == 0 {
			i += 32
			continue
		}
		var stop uint64
		if stop, escaped, carry = judge(w0, carry); stop != 0 {
		} else if stop, escaped, carry = judge(w1, carry); stop != 0 {
			i += 8
		} else if stop, escaped, carry = judge(w2, carry); stop != 0 {
			i += 16
		} else if stop, escaped, carry = judge(w3, carry); stop != 0 {
			i += 24
		} else {
			i += 32
			continue
		}
		at := bits.TrailingZeros64(stop)
		i += at >> 3
		switch {
		case escaped>>at&1 != 0:
			i = s.escape(i)
			for i >= 0 && i < len(d) && d[i] == '\\' {
				i = s.escape(i + 1) // such escapes come in rows
			}
			if i < 0 {
				return -1
			}
		case d[i] == '"':
			return i + 1
		default:
			return s.control(i)
		}
		carry = 0
	}
	if carry != 0 {
		if i = s.escape(i); i < 0 {
			return -1
		}
	}
	for i < len(d) {
		switch c := d[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return s.control(i)
		case c == '\\':
			if i = s.escape(i + 1); i < 0 {
				return -1
			}
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

// judge looks at eight bytes of a string. The results have one bit for a byte,
// its highest: stop marks the string's end, control characters, and what is
// escaped but by none of the usual escapes (of quote, backslash, newline and
// tab); escaped marks what has a backslash before it; next is the carry for the
// following word.
func judge(w, carry uint64) (stop, escaped, next uint64) {
	t := w & each7f
	noSlash := (t ^ each5c) + each7f | w // highest bit of a byte is 0: it is a backslash
	slash := ^noSlash & each80
	escaped, next = slash<<8|carry, slash>>56
	if escaped&slash != 0 {
		escaped, next = unravel(slash, carry)
	}
	noQuote := (t ^ each22) + each7f | w
	odd := escaped & noQuote & noSlash & ((t ^ eachN) + each7f | w) & ((t ^ eachT) + each7f | w)
	return (^((noQuote | escaped) & (t + each60 | w)) | odd) & each80, escaped, next
}

// unravel is what follows a backslash that is not escaped itself, where some
// stand side by side.
func unravel(slash, carry uint64) (escaped, next uint64) {
	escaped = carry
	for ; slash != 0; slash &= slash - 1 {
		if first := slash & -slash; first&escaped == 0 {
			escaped |= first << 8
			next = first >> 56
		}
	}
	return escaped, next
}

// escape scans an escape after its backslash at i-1.
func (s *scanner) escape(i int) int {
	d := s.data
	if i >= len(d) {
		return s.cut("a string")
	}
	switch d[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
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
