package classify

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/rule"

	"github.com/rebound-llm/rebound/recovery"
)

// number is a number of a folded text, with the words around it up to its
// neighbours. Numbers that are parts of names, versions, dates, addresses and
// identifiers are not among them.
type number struct {
	value  int
	unit   string // bytes, chars, pixels; "" is tokens, requests or unknown
	before string
	after  string
	lead   string // the few bytes before it, other numbers included
	at     int    // where it begins
}

// says reports whether s contains one of the words.
func says(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// follows reports whether the text after the number begins with one of the words.
func (n *number) follows(words ...string) bool {
	after := strings.TrimLeft(n.after, " )'")
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(after, w) })
}

// ahead reports whether what follows the number begins as the expression says.
func (n *number) ahead(expr *recovery.Pattern) bool {
	return expr.MatchString(strings.TrimLeft(n.after, " )'"))
}

// limits reports whether the words say that the number is a bound.
func (n *number) limits() bool {
	near := recovery.Tail(n.before, 64)
	if n.follows("maximum", "token limit", "limit", "max ", "token context", "-token", "context", "tokens maximum", "tokens max", "tokens limit",
		"token maximum", "output token maximum", "output token limit") && !n.follows("maximum context length is") {
		return true
	}
	if strings.HasSuffix(near, "> ") || strings.HasSuffix(near, ">= ") || strings.HasSuffix(near, "vs. ") || n.inRange() {
		return true
	}
	// The nearest word decides: "limit of", "is longer than the context length (".
	bound := lastOf(near, "maximum", "maxlength", "max_seq_len", "max_model_len", "max_kv_size", "max_input_tokens", "max ", "max:", "limit", "at most",
		"up to", "<=", "than ", "context length",
		"context of",
		"context size", "context window", "window", "batch size", "n_ctx", "allowed", "exceeds", "exceed ", "supports", "supported",
		"only ", "can take", "truncate to", "capacity", "within", "under ", "over ", "below", "最大", "限制", "上限", "超过", "超出")
	spent := lastOf(near, "requested", "resulted in", "contains", "given", "got", "you sent", "has ", "have ", "current length", "total of",
		"token count", "prompt is", "too long:", "keep the first", "required ", "will take ", "used", "received", "n_keep", "your input",
		"your prompt", "your request", "prompt's", "the prompt", "input's",
		"实际", "当前", "is too large:")
	return bound >= 0 && bound > spent
}

var (
	rangeOpens = recovery.NewPattern(`(?:\[|between |from |in range |in the range |范围[为是])$`)
	rangeGoes  = recovery.NewPattern(`(?:(?:\[|between |from |in range |in the range |范围[为是])[0-9]+(?:,| and| to|~|-|到|至)|\([0-9]+,) *$`)
)

// lowEnd reports whether the number is the lower end of "[1, 8192]" or "between 1 and 8192".
func (n *number) lowEnd() bool { return rangeOpens.MatchString(n.lead) }

// inRange reports whether the number is the upper end of such a range.
func (n *number) inRange() bool { return rangeGoes.MatchString(n.lead) }

func lastOf(s string, words ...string) int {
	best := -1
	for _, w := range words {
		if i := strings.LastIndex(s, w); i >= 0 {
			best = max(best, i+len(w))
		}
	}
	return best
}

// sized tells a limit from an amount for numbers with a unit.
func (n *number) sized(limit, amount *int) *int {
	near := recovery.Tail(n.before, 64)
	switch {
	case says(recovery.Tail(n.before, 20), "requestsize", "request size"):
		return amount
	case n.follows("bytes >", "byte >", "characters >", "chars >", "b >", "vs"):
		return amount
	case n.limits():
		return limit
	case says(near, "got", "length", "has", "is", "was", "of", "actual", "received", "size", "contains", "exceeded"):
		return amount
	}
	return nil
}

var (
	// With separators of thousands, but not "1, 30720" or "22,3"; 60.000000 is what
	// some print for a whole number.
	digits = recovery.NewPattern(`([0-9]{1,3}(?:[,_][0-9]{3})+\b|[0-9]+)(?:\.00+\b)?(k\b)?`)
	// What makes a number a part of a name, a version, a decimal, a date, a path.
	gluedBefore = recovery.NewPattern(`(?:[a-z_.#$@-]|[0-9]:|[a-z0-9_]/)$`)
	freeAfter   = recovery.NewPattern(`^(?:token|byte|char|pixel|px|[mkg]b|[^a-z0-9_.:-]|[.:](?:[^0-9]|$)|-(?:token|[^a-z0-9_]|$)|$)`)
	ratio       = recovery.NewPattern(`[0-9]{4}/$`) // 140000/131072
	// What makes it a code, a status or the name of something.
	identifying = recovery.NewPattern(`(?: id:? |code'?:? |status:? |http |<|error |messages\.|line |column |index |position |value=\(?)$`)
	joined      = recovery.NewPattern(`^[a-z0-9_-]*`)
)

// readNumber reads the number that text begins with.
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

// scanNumbers finds the numbers of a folded text, at most 40.
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
		if !ok || gluedBefore.MatchString(before) && !(length >= 4 && ratio.MatchString(before)) || !freeAfter.MatchString(text[j:]) ||
			length > 1 && text[i] == '0' || identifying.MatchString(before) || isParamsCode(text, i, j) {
			i += max(1, len(joined.FindString(text[i:])))
			continue
		}
		if n := len(out); n > 0 {
			out[n-1].after = layer(text[last:min(i, last+48)], false)
		}
		out = append(out, number{at: i, value: value, lead: text[max(0, i-24):i], before: layer(text[max(last, i-160):i], true)})
		last, i = j, j
	}
	if n := len(out); n > 0 {
		out[n-1].after = layer(text[last:min(len(text), last+48)], false)
	}
	for i := range out {
		n := &out[i]
		if n.unit = n.unitIn(text); n.unit == "other" {
			for j, unit := range [...]string{"kb", "mb", "gb"} {
				if n.follows(unit, unit[:1]+"ib") {
					n.unit, n.value = "bytes", min(n.value, 1<<20)<<(10*(j+1))
				}
			}
		}
	}
	return out
}

// isParamsCode reports that a number is MiniMax's code of a refusal: "invalid
// params, … (2013)".
func isParamsCode(text string, i, j int) bool {
	return strings.HasPrefix(text[j:], ")") && strings.HasSuffix(text[:i], "(") && strings.Contains(text[max(0, i-160):i], "invalid params")
}

// unitIn tells what the number counts: bytes, chars, pixels, other, or "".
func (n *number) unitIn(text string) string {
	switch {
	case n.follows("byte"), says(recovery.Tail(n.before, 40), "number of bytes"), says(recovery.Tail(n.before, 10), "(bytes)"):
		return "bytes"
	case n.follows("character", "chars", "个字符"), says(recovery.Tail(n.before, 24), "characters is"),
		says(recovery.Tail(n.before, 40), "string with length", "string with maximum length", "number of characters", "string value length"),
		strings.Contains(text, "string value length ("),
		strings.Contains(text, ": expected maxlength: ") && says(recovery.Tail(n.before, 20), "maxlength: ", "actual: "):
		return "chars"
	case n.follows("pixel", "px"):
		return "pixels"
	case n.follows("mb", "kb", "gb", "mib", "%", "x "):
		return "other"
	}
	return ""
}

// layer cuts s at the border of a layer: what is before it if end, after it otherwise.
func layer(s string, end bool) string {
	mark := string(rule.Border)
	if end {
		if i := strings.LastIndex(s, mark); i >= 0 {
			return s[i+len(mark):]
		}
		return s
	}
	head, _, _ := strings.Cut(s, mark)
	return head
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
