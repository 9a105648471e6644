package classify

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

const (
	quoteLen   = 12       // bytes of a passage; a shared passage is a quote
	quoteMin   = 3        // a whole request value of at least this many bytes is a quote too
	maxQuoting = 16 << 10 // bytes of an error's texts that are compared with the request
)

// quotes are passages of an upstream's error that are also in the request. A client
// controls them, and many servers echo them. ASCII letters are compared without case.
// The cost is linear in both texts.
type quotes struct {
	passages map[uint64]bool // by hash of quoteLen bytes of the error: whether the request has them
	values   map[string]bool // shorter passages: whether a request value equals them
	filter   [1 << 16]bool   // by the low bits of a hash: whether passages may have it
}

// findQuotes returns the passages of texts that are in the request, or nil for none.
func findQuotes(request []byte, texts []string) *quotes {
	if len(request) == 0 || len(texts) == 0 {
		return nil
	}
	q := &quotes{passages: map[uint64]bool{}, values: map[string]bool{}}
	left := maxQuoting
	for _, t := range texts {
		t = lowerASCII(clip(t, left))
		eachPassage(t, func(_ int, h uint64) {
			q.passages[h], q.filter[h&0xffff] = false, true
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

// addValues adds the short passages of t that start and end at word boundaries.
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

// search looks for the passages in the request's JSON strings. It skips field names,
// which errors mention for good reason, unless they contain unusual characters.
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
		if len(s) < quoteMin+2 || isFieldName(request, end) {
			continue
		}
		found = q.find(lowerASCII(transcript.Text(s))) || found
	}
	return found
}

func (q *quotes) find(s string) (found bool) {
	if len(s) < quoteLen {
		if _, ok := q.values[s]; ok && !isFormatWord(s) {
			q.values[s], found = true, true
		}
		return found
	}
	eachPassage(s, func(_ int, h uint64) {
		if !q.filter[h&0xffff] {
			return
		}
		if _, ok := q.passages[h]; ok {
			q.passages[h], found = true, true
		}
	})
	return found
}

// isFormatWord reports whether a value is a keyword of the wire format. Errors use
// these words too, so they are no quotes.
func isFormatWord(s string) bool {
	switch s {
	case "system", "developer", "user", "assistant", "tool", "function", "text", "auto", "none", "required", "any", "enabled", "disabled", "low", "medium", "high",
		"minimal", "max", "xhigh", "object", "string", "array", "number", "integer", "boolean", "null", "message", "reasoning", "image_url", "input_text", "output_text",
		"json_object", "json_schema", "ephemeral", "adaptive", "thinking", "tool_use", "tool_result":
		return true
	}
	return false
}

// without returns s with "…" in place of quoted passages. A nil q changes nothing.
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
	eachPassage(low, func(i int, h uint64) {
		if q.filter[h&0xffff] && q.passages[h] {
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

// eachPassage calls do with the index and the rolling hash of each passage of quoteLen bytes.
func eachPassage(s string, do func(at int, hash uint64)) {
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

// isFieldName reports whether the JSON string that closes at end is an object key
// made only of ASCII letters, digits and _ - .
func isFieldName(request []byte, end int) bool {
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

// lowerASCII lowers the ASCII letters of s and keeps its length.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
