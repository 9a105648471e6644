package transcript

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// walker steps through the members of one object or the elements of one array.
// It validates as it goes: next and skip return false at the end and on an
// error, which is then in the scanner's err.
type walker struct {
	s      *scanner
	depth  int // containers open around the members
	i      int // the offset to continue at; after the end, the offset behind the container
	object bool
	closer byte // the bracket that ends the container
	began  bool

	// The current member. name is decoded; key and keyEnd include the quotes.
	// In arrays name is nil and key equals val.
	name                     []byte
	key, keyEnd, val, valEnd int
}

// walk returns a walker through the container at i, inside depth open ones.
func (s *scanner) walk(i, depth int) walker {
	if depth >= s.limit {
		s.fail(CodeTooDeep, i, "the JSON is nested more than %d levels deep, at byte %d", s.limit, i)
	}
	c := s.data[i]
	return walker{s: s, i: i + 1, depth: depth + 1, object: c == '{', closer: c + 2} // in ASCII, closing brackets are two behind
}

// next finds the next member and stops at its value, which skip must pass.
func (w *walker) next() bool {
	s := w.s
	if s.err != nil {
		return false
	}
	d, i := s.data, w.i
	if uint(i) >= uint(len(d)) || d[i] <= ' ' {
		if i = s.space(i); i >= len(d) {
			s.cut("an object or array")
			return false
		}
	}
	switch c := d[i]; {
	case c == ',' && w.began:
		if i++; uint(i) >= uint(len(d)) || d[i] <= ' ' {
			i = s.space(i)
		}
	case c == w.closer:
		w.i = i + 1
		return false
	case w.began && w.object:
		s.unexpected(i, "a comma or '}'")
		return false
	case w.began:
		s.unexpected(i, "a comma or ']'")
		return false
	}
	w.began = true
	s.values++
	if !w.object {
		w.key, w.keyEnd, w.val = i, i, i
		return true
	}
	if uint(i) >= uint(len(d)) || d[i] != '"' {
		s.unexpected(i, "a quoted name")
		return false
	}
	w.key = i
	end := plainEnd(d, i+1)
	if end >= 0 {
		w.name = d[i+1 : end]
		end++
	} else if end = s.str(i + 1); end >= 0 {
		w.name = nameIn(d[i:end])
	}
	if w.keyEnd = end; end < 0 {
		return false
	}
	if uint(end) >= uint(len(d)) || d[end] != ':' {
		if end = s.space(end); end >= len(d) || d[end] != ':' {
			s.unexpected(end, "a colon")
			return false
		}
	}
	if end++; uint(end) >= uint(len(d)) || d[end] <= ' ' {
		end = s.space(end)
	}
	w.val = end
	return true
}

// plainEnd returns the offset of the closing quote of the name at i, if the name is
// short and has no escapes, as most are; else -1.
func plainEnd(d []byte, i int) int {
	for end := i + 8; i <= end && i+8 <= len(d); i += 8 {
		if m := special(binary.LittleEndian.Uint64(d[i:])); m != 0 {
			if i += bits.TrailingZeros64(m) >> 3; d[i] == '"' {
				return i
			}
			return -1
		}
	}
	return -1
}

// nameIn returns the text of a quoted name: a part of raw unless it has escapes.
func nameIn(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return appendDecoded(nil, raw)
	}
	return raw[1 : len(raw)-1]
}

// skip passes the current value and sets valEnd.
func (w *walker) skip() bool {
	return w.endAt(w.s.value(w.val, w.depth))
}

// noObject sets the error for the current value: an element of the list in this field
// that is not an object.
func (w *walker) noObject(field string) int {
	if w.s.value(w.val, w.depth) < 0 {
		return -1
	}
	w.s.fail(CodeWrongType, w.val, "each of '%s' must be an object; the value at byte %d is none", field, w.val)
	w.s.err.Field = field
	return -1
}

// endAt sets the end of the current value; it returns false if i is negative, which means an error.
func (w *walker) endAt(i int) bool {
	w.i, w.valEnd = i, i
	return i >= 0
}

// value returns the current value's bytes, after skip.
func (w *walker) value() []byte { return w.s.data[w.val:w.valEnd] }

// step is next and skip.
func (w *walker) step() bool { return w.next() && w.skip() }

// opened returns a walker through a valid value, which it does not validate again; ok is false if the
// value is not a container that begins with the byte open.
func opened(s *scanner, raw []byte, open byte) (w walker, ok bool) {
	if len(raw) == 0 || raw[0] != open {
		return walker{}, false
	}
	*s = scanner{data: raw, limit: math.MaxInt, known: true}
	return s.walk(0, 0), true
}

// elementsOf returns the elements of a valid array, which keep the capacity of list; none
// for any other value.
func elementsOf(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var s scanner
		for w, ok := opened(&s, list, '['); ok && w.step() && yield(w.value()); {
		}
	}
}

// partsOf returns the parts of a content, which may itself be one part.
func partsOf(content []byte) iter.Seq[[]byte] {
	if isObject(content) {
		return func(yield func([]byte) bool) { yield(content) }
	}
	return elementsOf(content)
}

// fieldsOf returns the decoded names and the values of a valid object, like elementsOf.
func fieldsOf(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		var s scanner
		for w, ok := opened(&s, object, '{'); ok && w.step() && yield(w.name, w.value()); {
		}
	}
}

// member returns the value of a field of a validated object. Of equal names
// the last counts, as in most upstreams' JSON readers.
func member(object []byte, name string) (raw []byte, ok bool) {
	for k, v := range fieldsOf(object) {
		if string(k) == name {
			raw, ok = v, true
		}
	}
	return raw, ok
}

// isList reports whether a validated value is an array.
func isList(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

// isObject reports whether a validated value is an object.
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// text returns the decoded value of a valid string, or "" for any other value.
func text(raw []byte) string {
	if !isString(raw) {
		return ""
	}
	if in := raw[1 : len(raw)-1]; bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	var short [256]byte // saves most strings a second copy
	if len(raw) <= len(short) {
		return string(appendDecoded(short[:0], raw))
	}
	return string(appendDecoded(make([]byte, 0, len(raw)), raw))
}

// appendText is text into a buffer.
func appendText(dst, raw []byte) []byte {
	if !isString(raw) {
		return dst
	}
	return appendDecoded(dst, raw)
}

// Text returns the decoded value of a JSON string that is known to be valid, or "" for
// any other value.
func Text(raw []byte) string { return text(raw) }

// nameOf returns the bytes between the quotes of a string, which equal its text unless it has
// escapes; nil for any other value.
func nameOf(raw []byte) []byte {
	if !isString(raw) {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// stringField returns the text of a member, "" if it is no string.
func stringField(object []byte, name string) string {
	raw, _ := member(object, name)
	return text(raw)
}

func isString(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }
func isNull(raw []byte) bool   { return len(raw) > 0 && raw[0] == 'n' }
func isTrue(raw []byte) bool   { return len(raw) > 0 && raw[0] == 't' }
func isBool(raw []byte) bool   { return len(raw) > 0 && (raw[0] == 't' || raw[0] == 'f') }

// Decode returns the text of a JSON string with its quotes; ok is false if raw
// is not exactly one valid string.
func Decode(raw []byte) (s string, ok bool) {
	if !isString(raw) || Valid(raw, 1) != nil {
		return "", false
	}
	return text(bytes.TrimRight(raw, " \t\r\n")), true
}

// appendDecoded appends the text of a valid JSON string with its quotes. Half
// surrogate pairs become U+FFFD; other bytes stay as they are.
func appendDecoded(dst, raw []byte) []byte {
	in := raw[1 : len(raw)-1]
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			return append(dst, in...)
		}
		dst = append(dst, in[:i]...)
		c := in[i+1]
		in = in[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(in)
			in = in[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(in) >= 6 && in[0] == '\\' && in[1] == 'u' {
					pair = utf16.DecodeRune(r, hex4(in[2:]))
				}
				if r = pair; r != utf8.RuneError {
					in = in[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
}

func hex4(in []byte) (r rune) {
	for _, c := range in[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// String encodes a JSON string. It escapes only what JSON demands, never <, >
// or &, so that text is written back with the bytes that clients use. Invalid
// UTF-8 becomes U+FFFD.
func String(s string) []byte {
	return AppendString(make([]byte, 0, len(s)+2+len(s)/16), s)
}

// AppendString is String into a buffer.
func AppendString(dst []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\ufffd")
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, s[from:i]...), '\\')
		switch c {
		case '\b':
			c = 'b'
		case '\f':
			c = 'f'
		case '\n':
			c = 'n'
		case '\r':
			c = 'r'
		case '\t':
			c = 't'
		case '"', '\\':
		default:
			dst = append(dst, 'u', '0', '0', '0'+c>>4)
			c = "0123456789abcdef"[c&15]
		}
		dst = append(dst, c)
		from = i + 1
	}
	return append(append(dst, s[from:]...), '"')
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
