package classify

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
)

// number is a number in a folded text, with the words up to the numbers before and
// after it. Digits in names, versions, dates, addresses and identifiers do not count.
type number struct {
	value  int
	unit   string // bytes, chars, pixels, other; "" is tokens, requests or unknown
	before string // the words before it in the same message
	after  string // the words after it in the same message
	lead   string // the 24 bytes before it, other numbers included
}

// says reports whether s contains one of the words.
func says(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// followedBy reports whether the text after the number begins with one of the words.
func (n *number) followedBy(words ...string) bool {
	after := strings.TrimLeft(n.after, " )'")
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(after, w) })
}

// followedByMatch reports whether the pattern matches the text after the number.
func (n *number) followedByMatch(expr *recovery.Pattern) bool {
	return expr.MatchString(strings.TrimLeft(n.after, " )'"))
}

// isLimit reports whether the words around the number make it a limit.
func (n *number) isLimit() bool {
	near := recovery.Tail(n.before, 64)
	if n.followedBy("maximum", "token limit", "limit", "max ", "token context", "-token", "context", "tokens maximum", "tokens max", "tokens limit",
		"token maximum", "output token maximum", "output token limit") && !n.followedBy("maximum context length is") {
		return true
	}
	if strings.HasSuffix(near, "> ") || strings.HasSuffix(near, ">= ") || strings.HasSuffix(near, "vs. ") || n.endsRange() {
		return true
	}
	// The nearest word decides: "limit of", "is longer than the context length (".
	bound := lastEnd(near, "maximum", "maxlength", "max_seq_len", "max_model_len", "max_kv_size", "max_input_tokens", "max ", "max:", "limit", "at most",
		"up to", "<=", "than ", "context length",
		"context of",
		"context size", "context window", "window", "batch size", "n_ctx", "allowed", "exceeds", "exceed ", "supports", "supported",
		"only ", "can take", "truncate to", "capacity", "within", "under ", "over ", "below", "最大", "限制", "上限", "超过", "超出")
	spent := lastEnd(near, "requested", "resulted in", "contains", "given", "got", "you sent", "has ", "have ", "current length", "total of",
		"token count", "prompt is", "too long:", "keep the first", "required ", "will take ", "used", "received", "n_keep", "your input",
		"your prompt", "your request", "prompt's", "the prompt", "input's",
		"实际", "当前", "is too large:")
	return bound >= 0 && bound > spent
}

var (
	rangeStart = recovery.NewPattern(`(?:\[|between |from |in range |in the range |范围[为是])$`)
	rangeEnd   = recovery.NewPattern(`(?:(?:\[|between |from |in range |in the range |范围[为是])[0-9]+(?:,| and| to|~|-|到|至)|\([0-9]+,) *$`)
)

// startsRange reports whether the number is the lower end of "[1, 8192]" or "between 1 and 8192".
func (n *number) startsRange() bool { return rangeStart.MatchString(n.lead) }

// endsRange reports whether the number is the upper end of such a range.
func (n *number) endsRange() bool { return rangeEnd.MatchString(n.lead) }

// lastEnd returns the end of the last occurrence of any of the words in s, or -1.
func lastEnd(s string, words ...string) int {
	best := -1
	for _, w := range words {
		if i := strings.LastIndex(s, w); i >= 0 {
			best = max(best, i+len(w))
		}
	}
	return best
}

// limitOrAmount returns limit or amount, whichever the number states, or nil if
// that is unclear. It is for numbers with a unit.
func (n *number) limitOrAmount(limit, amount *int) *int {
	near := recovery.Tail(n.before, 64)
	switch {
	case says(recovery.Tail(n.before, 20), "requestsize", "request size"):
		return amount
	case n.followedBy("bytes >", "byte >", "characters >", "chars >", "b >", "vs"):
		return amount
	case n.isLimit():
		return limit
	case says(near, "got", "length", "has", "is", "was", "of", "actual", "received", "size", "contains", "exceeded"):
		return amount
	}
	return nil
}

var (
	// With thousands separators, but not "1, 30720" or "22,3". Some servers print a
	// whole number as 60.000000.
	digits = recovery.NewPattern(`([0-9]{1,3}(?:[,_][0-9]{3})+\b|[0-9]+)(?:\.0+\b)?(k\b)?`)
	// A number after this, or not before that, is part of a name, version, decimal, date or path.
	namePartBefore = recovery.NewPattern(`(?:[a-z_.#$@-]|[0-9]:|[a-z0-9_]/)$`)
	numberEnd      = recovery.NewPattern(`^(?:token|byte|char|pixel|px|[mkg]b|[^a-z0-9_.:-]|[.:](?:[^0-9]|$)|-(?:token|[^a-z0-9_]|$)|$)`)
	ratio          = recovery.NewPattern(`[0-9]{4}/$`) // 140000/131072
	// A number after this is a code, a status or an identifier.
	identifierBefore = recovery.NewPattern(`(?: id:? |code'?:? |status:? |http |<|error |messages\.|line |column |index |position |value=\(?)$`)
	restOfWord       = recovery.NewPattern(`^[a-z0-9_-]*`)
)

// readNumber reads the number at the start of text and returns where it ends.
func readNumber(text string) (value, end int, ok bool) {
	ms := digits.FindAllStringSubmatchIndex(text, 1)
	if len(ms) == 0 || ms[0][0] != 0 {
		return 0, 0, false
	}
	m := ms[0]
	value, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(text[:m[3]]))
	if m[4] >= 0 {
		value *= 1000
	}
	return value, m[1], err == nil && value < 1e12
}

// scanNumbers returns the numbers in a folded text, at most 40.
func scanNumbers(text string) []number {
	var out []number
	last := 0 // end of the previous number
	for i := 0; len(out) < 40; {
		skip := strings.IndexAny(text[i:], "0123456789")
		if skip < 0 {
			break
		}
		i += skip
		value, length, ok := readNumber(text[i:])
		j, before := i+length, text[max(0, i-14):i]
		if !ok || namePartBefore.MatchString(before) && !(length >= 4 && ratio.MatchString(before)) || !numberEnd.MatchString(text[j:]) ||
			length > 1 && text[i] == '0' || identifierBefore.MatchString(before) || isParamsCode(text, i, j) {
			i += max(1, len(restOfWord.FindString(text[i:])))
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].after = beforeBorder(text[last:min(i, last+48)])
		}
		out = append(out, number{value: value, lead: text[max(0, i-24):i], before: afterBorder(text[max(last, i-160):i])})
		last, i = j, j
	}
	if n := len(out); n > 0 {
		out[n-1].after = beforeBorder(text[last:min(len(text), last+48)])
	}
	for i := range out {
		n := &out[i]
		if n.unit = n.unitIn(text); n.unit == "other" {
			for j, unit := range [...]string{"kb", "mb", "gb"} {
				if n.followedBy(unit, unit[:1]+"ib") {
					n.unit, n.value = "bytes", min(n.value, 1<<20)<<(10*(j+1))
				}
			}
		}
	}
	return out
}

// isParamsCode reports whether the number text[i:j] is MiniMax's error code, as in
// "invalid params, … (2013)".
func isParamsCode(text string, i, j int) bool {
	return strings.HasPrefix(text[j:], ")") && strings.HasSuffix(text[:i], "(") && strings.Contains(text[max(0, i-160):i], "invalid params")
}

// unitIn returns the unit of the number: bytes, chars, pixels, other, or "".
func (n *number) unitIn(text string) string {
	switch {
	case n.followedBy("byte"), says(recovery.Tail(n.before, 40), "number of bytes"), says(recovery.Tail(n.before, 10), "(bytes)"):
		return "bytes"
	case n.followedBy("character", "chars", "个字符"), says(recovery.Tail(n.before, 24), "characters is"),
		says(recovery.Tail(n.before, 40), "string with length", "string with maximum length", "number of characters", "string value length"),
		strings.Contains(text, "string value length ("),
		strings.Contains(text, ": expected maxlength: ") && says(recovery.Tail(n.before, 20), "maxlength: ", "actual: "):
		return "chars"
	case n.followedBy("pixel", "px"):
		return "pixels"
	case n.followedBy("mb", "kb", "gb", "mib", "%", "x "):
		return "other"
	}
	return ""
}

const border = string(rule.Border)

// afterBorder returns the part of s after the last border between messages.
func afterBorder(s string) string {
	if i := strings.LastIndex(s, border); i >= 0 {
		return s[i+len(border):]
	}
	return s
}

// beforeBorder returns the part of s before the first border between messages.
func beforeBorder(s string) string {
	head, _, _ := strings.Cut(s, border)
	return head
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
