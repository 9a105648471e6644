package fit

import (
	"regexp"
	"strings"
	"unicode"
)

// Bounds of what is looked for in a message of the user.
const (
	maxDemand   = 400      // bytes of one sentence
	maxDemands  = 40       // of one message
	maxReadUser = 64 << 10 // bytes of a message that are read
)

var (
	sentenceEnd = regexp.MustCompile(`[.!?](?:["')\]]*)(?:\s+|$)|\n+`)
	// demand is how people restrict work.
	demand = regexp.MustCompile(`(?i)\b(?:must|never|always|only|avoid|forbidden|prohibited|required|mandatory|shall|should(?: not|n['’]t)|ensure|make sure|instead of|rather than|without|not allowed|under no circumstances|stick to|at (?:most|least)|(?:do|does|can|may|must|should|shall|will)(?:n['’]t| not)|cannot|no (?:new|other|more|longer)|leave|keep|use|prefer|remember)\b`)
)

// demands are the sentences of a person's message that demand or forbid
// something, whole. rest reports whether it says more than these.
func demands(text string) (list []string, rest bool) {
	text = cutBefore(text, maxReadUser)
	start, other := 0, 0
	for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		s := strings.TrimSpace(text[start:end[1]])
		start = end[1]
		if len(list) < maxDemands && prosaic(s) && demand.MatchString(s) {
			list = append(list, oneLine(s, maxDemand))
			continue
		}
		other += letters(s)
	}
	return list, other > 0
}

// prosaic reports whether a line is a sentence rather than code or output:
// mostly letters and blanks, of a few words, and no question.
func prosaic(s string) bool {
	words := len(strings.Fields(s))
	if words < 3 || words > 80 || len(s) > 2*maxDemand || strings.HasSuffix(s, "?") {
		return false
	}
	plain, all := 0, 0
	for _, r := range s {
		all++
		if unicode.IsLetter(r) || r == ' ' {
			plain++
		}
	}
	return 4*plain >= 3*all
}

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}
