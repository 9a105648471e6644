package upstreamtest

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// DefaultTool is the tool that the mock calls if a request offers none.
	DefaultTool = "get_weather"
	// ToolArguments are the arguments of every scripted tool call that has no
	// args directive.
	ToolArguments = `{"city":"Paris"}`
	// ReasoningText is the reasoning before an answer with reasoning.
	ReasoningText = "The user wants an answer. First I look at what was asked, then at what is known, then I decide. That is settled now, so I write it down."
	// PrefillElsewhere continues a prefill that is not the beginning of the mock's own text.
	PrefillElsewhere = " and here another thought takes over, which the first answer never had."

	defaultBytes  = 600
	defaultChunks = 20

	overlapWords = 4
	reasonChunks = 8
)

// TextFor returns the text of a model's default answer. The name may include a
// script, whose directives are ignored; see TextOf for those.
func TextFor(model string) string { return TextOf(model, "", defaultBytes) }

// TextOf returns the text of a model's answer under the directives text=variant and
// bytes=size. Variants differ from the first character on.
func TextOf(model, variant string, size int) string {
	return generate(nameOf(model), variant, size)
}

// ToolCallID returns the id of the first tool call in the answer to request n
// (Record.N). Further choices of that answer have ids that begin with it.
func ToolCallID(n int64) string { return "call_mock_" + decimal(n) }

var vocabulary = strings.Fields(`the gateway request answer stream token model upstream session turn budget
	window reads writes keeps sends holds counts waits moves tries again before after while every first next
	last small large quiet early late plain steady careful measured remote local shared ready open done
	naïve café Zürich Ærøskøbing façade 東京 日本語 привет Ελλάδα 🙂 🚀 π≈3.14 “quoted” "double" back\slash
	<tag> a&b it's 50% C:\temp #1 {braces} [brackets] ne` + "\u0301")

// generate returns size bytes of text that depend only on its arguments.
func generate(name, variant string, size int) string {
	h := fnv.New64a()
	h.Write([]byte(name + "\x00" + variant))
	x := h.Sum64() | 1
	pick := func(n int) int { // xorshift
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return int((x >> 33) % uint64(n))
	}
	var b strings.Builder
	b.Grow(size + 128)
	if variant != "" {
		b.WriteString("[" + variant + "] ")
	}
	for sentence := 1; b.Len() < size; sentence++ {
		for i := range 5 + pick(8) {
			w := vocabulary[pick(len(vocabulary))]
			if i == 0 {
				r, n := utf8.DecodeRuneInString(w)
				w = strings.ToUpper(string(r)) + w[n:]
			} else {
				b.WriteByte(' ')
			}
			b.WriteString(w)
		}
		switch {
		case sentence == 1:
			b.WriteString(` – "né" in\out 🙂. `)
		case sentence%6 == 0:
			b.WriteString(".\n\n\t")
		default:
			b.WriteString(". ")
		}
	}
	s := b.String()
	cut := max(size-1, 0)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + strings.Repeat(".", size-cut)
}

// pieces splits s at character boundaries into at most n parts, each escaped for JSON.
func pieces(s string, n int) []string {
	out := make([]string, 0, min(n, len(s)))
	for i, from := 1, 0; i <= n && from < len(s); i++ {
		to := len(s) * i / n
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
		if to > from {
			out = append(out, escape(s[from:to]))
			from = to
		}
	}
	return out
}

// continuation returns what the model adds to a prefill.
func continuation(text, prefix string, mode prefillMode) string {
	if prefix == "" || mode == prefillIgnore {
		return text
	}
	rest, own := strings.CutPrefix(text, prefix)
	if !own {
		rest = PrefillElsewhere
	}
	if mode == prefillOverlap {
		rest = lastWords(prefix, overlapWords) + rest
	}
	return rest
}

// lastWords returns the last n words of s.
func lastWords(s string, n int) string {
	at := len(strings.TrimRight(s, " "))
	for ; n > 0 && at >= 0; n-- {
		at = strings.LastIndexByte(s[:at], ' ')
	}
	return s[at+1:]
}

// tuning is the timing and size of an answer.
type tuning struct {
	latency, gap  time.Duration
	chunks, bytes int
}

// quoted returns s as a JSON string. Non-ASCII characters stay unescaped.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// escape returns s escaped for JSON, without the quotes around it.
func escape(s string) string {
	q := quoted(s)
	return q[1 : len(q)-1]
}

// nullable returns s as a JSON string, or null if it is empty.
func nullable(s string) string {
	if s == "" {
		return "null"
	}
	return quoted(s)
}

// decimal returns n in digits.
func decimal(n int64) string { return strconv.FormatInt(n, 10) }
