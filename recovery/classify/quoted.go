package classify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Bounds of what is compared with the request.
const (
	quoteLen   = 12       // bytes that two texts have to share for one to quote the other
	quoteMin   = 3        // bytes of the shortest value of a request that is a quotation as a whole
	maxQuoting = 16 << 10 // bytes of an error's texts that are looked for in the request
)

// quotes are passages of an upstream's error that stand in the request, too: a client
// can write whatever it likes there, and many servers repeat it. Letters of ASCII are
// compared without case. The cost is linear in both texts.
type quotes struct {
	runs   map[uint64]bool // hashes of passages of quoteLen bytes: whether the request has them
	values map[string]bool // shorter ones: whether a value of the request is just that
	maybe  [1 << 16]bool   // by the low bits of a hash: whether runs may have it
}

// quoted finds what texts have in common with a request; nil where that is nothing.
func quoted(request []byte, texts []string) *quotes {
	if len(request) == 0 || len(texts) == 0 {
		return nil
	}
	q := &quotes{runs: map[uint64]bool{}, values: map[string]bool{}}
	left := maxQuoting
	for _, t := range texts {
		t = lowerASCII(clip(t, left))
		eachRun(t, func(_ int, h uint64) {
			q.runs[h], q.maybe[h&0xffff] = false, true
		})
		q.addValues(t)
		if left -= len(t); left <= 0 {
			break
		}
	}
	if found := q.search(request); !found {
		return nil
	}
	return q
}

// addValues notes the passages that may be a short value: they begin and end with words.
func (q *quotes) addValues(t string) {
	for i := range t {
		if i > 0 && wordAt(t, i) && wordBefore(t, i) {
			continue
		}
		for j := i + quoteMin; j < i+quoteLen && j <= len(t); j++ {
			if j == len(t) || utf8.RuneStart(t[j]) && !(wordAt(t, j) && wordBefore(t, j)) {
				q.values[t[i:j]] = false
			}
		}
	}
}

// search looks for the passages in the strings of a request. Names of fields are no
// strings here unless they hold what no name does: an error names fields rightly.
func (q *quotes) search(request []byte) (found bool) {
	for i := 0; i < len(request); i++ {
		if request[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(request) && request[end] != '"' {
			if request[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(request) {
			break
		}
		s := request[i : end+1]
		i = end
		if len(s) < quoteMin+2 || isName(request, end) {
			continue
		}
		found = q.find(lowerASCII(transcript.Text(s))) || found
	}
	return found
}

func (q *quotes) find(s string) (found bool) {
	if len(s) < quoteLen {
		if _, ok := q.values[s]; ok && !formatWord(s) {
			q.values[s], found = true, true
		}
		return found
	}
	eachRun(s, func(_ int, h uint64) {
		if !q.maybe[h&0xffff] {
			return
		}
		if _, ok := q.runs[h]; ok {
			q.runs[h], found = true, true
		}
	})
	return found
}

// formatWord reports whether a value is a word of the wire format, which errors use as
// the request does: it is nobody's quotation.
func formatWord(s string) bool {
	switch s {
	case "system", "developer", "user", "assistant", "tool", "function", "text", "auto", "none", "required", "any", "enabled", "disabled", "low", "medium", "high",
		"minimal", "max", "xhigh", "object", "string", "array", "number", "integer", "boolean", "null", "message", "reasoning", "image_url", "input_text", "output_text",
		"json_object", "json_schema":
		return true
	}
	return false
}

// without returns a text without what it quotes.
func (q *quotes) without(s string) string {
	if q == nil {
		return s
	}
	low := lowerASCII(s)
	gone := make([]bool, len(s)+1)
	some := false
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			gone[i] = true
		}
		some = true
	}
	marked := 0
	eachRun(low, func(i int, h uint64) {
		if q.maybe[h&0xffff] && q.runs[h] {
			mark(max(i, marked), i+quoteLen)
			marked = i + quoteLen
		}
	})
	for i := range low {
		if i > 0 && wordAt(low, i) && wordBefore(low, i) {
			continue
		}
		for j := i + quoteMin; j < i+quoteLen && j <= len(low); j++ {
			if q.values[low[i:j]] && (j == len(low) || !(wordAt(low, j) && wordBefore(low, j))) {
				mark(i, j)
			}
		}
	}
	if !some {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case !gone[i]:
			b.WriteByte(s[i])
		case i == 0 || !gone[i-1]:
			b.WriteString("…")
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

// eachRun calls do with the place and the hash of each passage of quoteLen bytes.
func eachRun(s string, do func(at int, hash uint64)) {
	const base = 1099511628211
	last := uint64(1) // base to the power of quoteLen
	for range quoteLen {
		last *= base
	}
	var h uint64
	for i := range len(s) {
		h = h*base + uint64(s[i]) + 1
		if i >= quoteLen {
			h -= last * (uint64(s[i-quoteLen]) + 1)
		}
		if i >= quoteLen-1 {
			do(i-quoteLen+1, h^h>>29)
		}
	}
}

// isName reports whether the string that ends before end names a field, and is
// made as such names are.
func isName(request []byte, end int) bool {
	for i := end + 1; i < len(request); i++ {
		switch request[i] {
		case ' ', '\t', '\r', '\n':
			continue
		case ':':
		default:
			return false
		}
		break
	}
	for i := end - 1; i >= 0 && request[i] != '"'; i-- {
		if c := request[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return true
}

func wordAt(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return inWord(r)
}

func wordBefore(s string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return inWord(r)
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) && !unicode.Is(unicode.Han, r) || unicode.IsDigit(r) || r == '_'
}

// lowerASCII returns s with its capital letters of ASCII small, as long as s.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
