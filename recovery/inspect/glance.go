package inspect

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// largeData is the size, in bytes, from which on a reading tool's plain text is data.
const largeData = 4000

// glance judges a result without decoding it, where its bytes are enough to know
// that judgeData calls it data: a plain text from a tool that reads, of more than
// largeData bytes or more than fewLines lines. ok is false where it has to be read.
func (s *step) glance() (ok bool) {
	if s.whole {
		return false
	}
	if a := s.call(); a.kind != trajectory.Reader || a.command != "" {
		return false
	}
	at, ok := s.history.list[s.Index].Content()
	if !ok {
		return false
	}
	if s.raw, ok = rawTextOf(s.history.body.Raw()[at.Start:at.End]); !ok || s.raw.least <= largeData && !s.raw.lined() {
		s.raw = rawText{}
		return false
	}
	s.verdict = recovery.ToolFailure{Index: s.Index, CallID: s.CallID, Tool: s.Tool, Arguments: s.Arguments,
		Category: recovery.CategoryNone, Confidence: fine, Rule: "data"}
	return true
}

// rawText is a text as it stands in JSON, without the blanks around it.
type rawText struct {
	json    []byte
	least   int  // of bytes that it has when it is decoded
	unicode bool // there may be escapes of Unicode
}

// rawTextOf is the text of a JSON string that begins like no wrapper of a reading
// tool's result, has no terminal escapes, and is looked at as a whole.
func rawTextOf(raw []byte) (t rawText, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || len(raw) > headWindow+tailWindow+2 {
		return t, false
	}
	t.json = trimBlanks(raw[1 : len(raw)-1])
	// Capitals begin errors, which in so long a text are data.
	if len(t.json) == 0 || !plainStart(t.json[0]) && (t.json[0] < 'A' || t.json[0] > 'Z') {
		return t, false
	}
	more := 1 // by which an escape is longer than what it stands for
	if t.unicode = unicodeEscape(t.json); t.unicode {
		if more = 5; (probe{text: `\u001`, at: 4}).in(t.json) {
			return t, false
		}
	}
	t.least = len(t.json) - more*bytes.Count(t.json, []byte{'\\'})
	return t, true
}

// lined reports whether a text that is not large surely has more than fewLines
// lines, and neither begins as what is said of a call, nor goes on with
// proposals, nor ends with a program's advice: judgeData looks for no more in so
// many lines.
func (t *rawText) lined() bool {
	if t.unicode || !plainStart(t.json[0]) || !t.moreLines(fewLines) || bytes.Contains(t.json, []byte("--help")) {
		return false
	}
	// What errorCall looks for has no escapes.
	return strings.IndexByte(errorCallStarts, t.json[0]) < 0 || !errorCall.MatchString(string(t.json[:min(len(t.json), largeErrorCall)]))
}

// unicodeEscape reports whether there may be an escape of Unicode. The letter is rare
// enough to stop at each.
func unicodeEscape(json []byte) bool {
	for from := 0; ; from++ {
		i := bytes.IndexByte(json[from:], 'u')
		if i < 0 {
			return false
		}
		if from += i; from > 0 && json[from-1] == '\\' {
			return true
		}
	}
}

// hinted reports whether a line may be a hint that judgeData would see.
func hinted(line []byte) bool {
	return len(line) > 0 && strings.IndexByte(hintStarts, line[0]) >= 0 && hint.MatchString(string(line[:min(len(line), largeHint)]))
}

// indexPair is where the first b directly after an a stands, -1 without one. In
// source code both of an escape's bytes are frequent: it looks at eight places at
// once, where a search for either byte would stop at each.
func indexPair(s []byte, a, b byte) int {
	const each01, each80 = 0x0101010101010101, 0x8080808080808080
	eachA, eachB := each01*uint64(a), each01*uint64(b)
	i := 0
	for ; i+9 <= len(s); i += 8 {
		w := (binary.LittleEndian.Uint64(s[i:]) ^ eachA) | (binary.LittleEndian.Uint64(s[i+1:]) ^ eachB)
		if m := (w - each01) &^ w & each80; m != 0 { // a byte of w is 0; above the lowest such, a borrow can mark others
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i+1 < len(s); i++ {
		if s[i] == a && s[i+1] == b {
			return i
		}
	}
	return -1
}

// hintStarts are the letters that hint begins with, largeHint is more than the
// length of what it looks for, in bytes, and hintLines is how many lines at the
// beginning may be hints.
const (
	hintStarts = "ACDFMPS"
	largeHint  = 48
	hintLines  = 3
)

// errorCallStarts are the small letters that errorCall begins with, and
// largeErrorCall is more than the length of what it looks for, in bytes.
const (
	errorCallStarts = "aeimtv"
	largeErrorCall  = 24
)

// moreLines reports whether more than n lines before the last are surely not
// blank: each has something in ASCII, and no return, which may overwrite it. It is
// false where one of the first may be a hint.
func (t *rawText) moreLines(n int) bool {
	says, lines := false, 0 // the line so far, and how many before it are surely not blank
	for rest := t.json; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 == len(rest) {
			return false
		}
		says = says || anyASCII(rest[:i])
		switch rest[i+1] {
		case 'n':
			if says {
				if lines++; lines > n {
					return true
				}
			}
			if lines < hintLines && hinted(rest[i+2:]) {
				return false
			}
			says = false
		case 't':
		case 'r':
			return false
		default:
			says = true
		}
		rest = rest[i+2:]
	}
}

// anyASCII reports whether a part of a text has more than blanks, in ASCII.
func anyASCII(part []byte) bool {
	for _, c := range part {
		if c > ' ' && c < utf8.RuneSelf {
			return true
		}
	}
	return false
}

// trimBlanks removes blanks, and escapes of blanks, from both ends of a JSON
// string without its quotes. A backslash before such an escape may be left over.
func trimBlanks(s []byte) []byte {
	for len(s) > 1 && (s[0] == ' ' || blankEscape(s)) {
		if s[0] == '\\' {
			s = s[1:]
		}
		s = s[1:]
	}
	for n := len(s); ; n = len(s) {
		switch {
		case n > 0 && s[n-1] == ' ':
			s = s[:n-1]
		case n > 1 && blankEscape(s[n-2:]):
			s = s[:n-2]
		default:
			return s
		}
	}
}

// blankEscape reports whether s begins with an escape of white space.
func blankEscape(s []byte) bool {
	return s[0] == '\\' && (s[1] == 'n' || s[1] == 't' || s[1] == 'r' || s[1] == 'f')
}

// fewest is the fewest bytes of a message with the same text in it, 0 if that is
// not known: JSON is no shorter than what it stands for, and a wrapper says no
// more than the first line twice.
func (t *rawText) fewest() int {
	line := indexPair(t.json, '\\', 'n')
	if line < 0 || line > 0 && t.json[line-1] == '\\' || t.unicode || t.json[len(t.json)-1] >= utf8.RuneSelf {
		return 0
	}
	return t.least - line
}

// longer reports whether what the result says surely has more than n bytes. What
// begins plainly has no wrapper.
func (t *rawText) longer(n int) bool {
	return t.least > n && !t.unicode && plainStart(t.json[0]) && t.json[len(t.json)-1] < utf8.RuneSelf
}
