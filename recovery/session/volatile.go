package session

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maskDates replaces each date and time in a text with a zero byte, in place, because clients rebuild system prompts for
// every request and a conversation may continue after midnight. Other numbers stay, since they may distinguish two
// customers.
//
//	2026-11-24   2026/11/24   24.11.2026   11/24/2026   11/24/26   2026-11-24T10:00:00.123+01:00
//	Mon Nov 24 2026   Tuesday, November 24th, 2026   24 Nov 2026   Nov 2026   10:05   10:05:30 PM
func maskDates(text []byte) []byte {
	out, from := text[:0], 0
	for i := 0; i < len(text); i++ {
		if i = nextDigit(text, i); i == len(text) {
			break
		}
		if i > 0 && glued(text[i-1]) {
			continue
		}
		start, end := i, dateAt(text, i)
		if back := monthBefore(text, from, i); back < i {
			if end == 0 {
				end = dayOrYear(text, i)
			}
			start = back
		}
		if end == 0 {
			i = digits(text, i) - 1
			continue
		}
		out = append(out, text[from:weekdayBefore(text, from, start)]...)
		out = append(out, 0)
		from, i = end, end-1
	}
	return append(out, text[from:]...)
}

// nextDigit returns the offset of the first digit from i on, or the text's length. It checks eight bytes at once: a digit
// XOR 0x30 is less than 10. A borrow can mark a wrong byte only above a correctly marked one, so the lowest mark is right.
func nextDigit(text []byte, i int) int {
	const each01 = 0x0101010101010101
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:]) ^ '0'*each01
		if m := (w - 10*each01) &^ w & (0x80 * each01); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(text) && text[i]-'0' > 9 {
		i++
	}
	return i
}

// glued reports whether a number after c is a part of something longer.
func glued(c byte) bool {
	return isWord(c) || c == '.' || c == ':' || c == '-' || c == '/'
}

func isWord(c byte) bool {
	return c-'0' < 10 || c|0x20-'a' < 26 || c == '_' || c >= 0x80
}

// digits returns the offset after the digits at i.
func digits(text []byte, i int) int {
	for i < len(text) && text[i]-'0' < 10 {
		i++
	}
	return i
}

func at(text []byte, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// dateAt returns the offset after the date or time at i, or 0 if there is none.
func dateAt(text []byte, i int) int {
	one := digits(text, i)
	switch sep := at(text, one); {
	case sep == ':':
		return timeAt(text, i)
	case sep == '-' || sep == '/' || sep == '.':
		two := digits(text, one+1)
		if n := two - one - 1; n < 1 || n > 2 || at(text, two) != sep {
			return 0
		}
		three := digits(text, two+1)
		switch first, last := one-i, three-two-1; {
		case first == 4 && (last == 1 || last == 2):
		case first <= 2 && (last == 4 || last == 2 && sep == '/'):
		default:
			return 0
		}
		if at(text, three) == 'T' {
			if end := timeAt(text, three+1); end > 0 {
				return end
			}
		}
		if isWord(at(text, three)) {
			return 0
		}
		return three
	case one-i <= 2:
		// 24 November, 24th of November
		j := one
		if isWord(at(text, j)) {
			j += 2 // st, nd, rd, th
		}
		if at(text, j) != ' ' {
			return 0
		}
		if j++; bytes.HasPrefix(text[min(j, len(text)):], []byte("of ")) {
			j += 3
		}
		k := word(text, j)
		if !isMonth(text[min(j, len(text)):k]) {
			return 0
		}
		return year(text, k)
	}
	return 0
}

// timeAt returns the offset after the time of day at i, or 0 if there is none.
func timeAt(text []byte, i int) int {
	j := digits(text, i)
	if n := j - i; n < 1 || n > 2 || at(text, j) != ':' {
		return 0
	}
	end := digits(text, j+1)
	if end-j != 3 {
		return 0
	}
	if at(text, end) == ':' {
		if s := digits(text, end+1); s-end == 3 {
			if end = s; at(text, end) == '.' && digits(text, end+1) > end+1 {
				end = digits(text, end+1)
			}
		}
	}
	switch c := at(text, end); {
	case c == 'Z':
		return end + 1
	case (c == '+' || c == '-') && digits(text, end+1)-end-1 >= 2:
		end = digits(text, end+1)
		if at(text, end) == ':' {
			end = digits(text, end+1)
		}
		return end
	}
	half := end
	if at(text, half) == ' ' {
		half++
	}
	if c := at(text, half) | 0x20; (c == 'a' || c == 'p') && at(text, half+1)|0x20 == 'm' && !isWord(at(text, half+2)) {
		return half + 2
	}
	return end
}

// dayOrYear returns the offset after "24", "24th", "24, 2026" or "2026" that follows a month, or 0 if there is none.
func dayOrYear(text []byte, i int) int {
	end := digits(text, i)
	switch end - i {
	case 4:
	case 1, 2:
		if isWord(at(text, end)) {
			end += 2
		}
		end = year(text, min(end, len(text)))
	default:
		return 0
	}
	if isWord(at(text, end)) {
		return 0
	}
	return end
}

// year returns the offset after a separator and a year at i; i if there is none.
func year(text []byte, i int) int {
	j := i
	if at(text, j) == ',' {
		j++
	}
	if at(text, j) == ' ' {
		j++
	}
	if end := digits(text, j); j > i && end-j == 4 && !isWord(at(text, end)) && at(text, end) != ':' {
		return end
	}
	return i
}

// word returns the offset after the letters at i.
func word(text []byte, i int) int {
	for i < len(text) && text[i]|0x20-'a' < 26 {
		i++
	}
	return min(i, len(text))
}

// before returns the word before i, ignoring one space and one comma or full stop between them.
func before(text []byte, from, i int) (start, end int) {
	end = i
	if end > from && text[end-1] == ' ' {
		end--
	}
	if end > from && (text[end-1] == ',' || text[end-1] == '.') {
		end--
	}
	for start = end; start > from && text[start-1]|0x20-'a' < 26; start-- {
	}
	return start, end
}

// monthBefore returns the beginning of the month's name before i; i if there is none.
func monthBefore(text []byte, from, i int) int {
	if start, end := before(text, from, i); end < i && isMonth(text[start:end]) {
		return start
	}
	return i
}

// weekdayBefore returns the beginning of the weekday's name before i; i if there is none.
func weekdayBefore(text []byte, from, i int) int {
	if start, end := before(text, from, i); end < i && isWeekday(text[start:end]) {
		return start
	}
	return i
}

func isMonth(word []byte) bool {
	return named(word, "january february march april may june july august september october november december", 3) ||
		len(word) == 4 && bytes.EqualFold(word, []byte("sept"))
}

func isWeekday(word []byte) bool {
	return named(word, "monday tuesday wednesday thursday friday saturday sunday", 3) ||
		len(word) == 4 && bytes.EqualFold(word, []byte("tues")) || len(word) == 5 && bytes.EqualFold(word, []byte("thurs"))
}

// named reports whether word is one of the names, or its first short letters.
func named(word []byte, names string, short int) bool {
	if len(word) < short || len(word) > 9 {
		return false
	}
	for names != "" {
		n := 0
		for n < len(names) && names[n] != ' ' {
			n++
		}
		if name := names[:n]; (len(word) == n || len(word) == short) && bytes.EqualFold(word, []byte(name[:len(word)])) {
			return true
		}
		names = names[min(n+1, len(names)):]
	}
	return false
}
