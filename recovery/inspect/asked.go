package inspect

import (
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxAsked limits the length of a user message that may ask for repetition, in bytes.
const maxAsked = 4 << 10

// numerals are numbers written as words.
var numerals = map[string]int{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
	"twenty": 20, "fifty": 50, "hundred": 100}

// askedToRepeat returns what the user's last message says about repeating the calls of the last turn: how often,
// counting only sentences that refer to these calls, and whether it asks to repeat until something happens.
func (h *history) askedToRepeat() (times int, until bool) {
	messages := h.userMessages()
	if len(messages) == 0 {
		return 0, false
	}
	text := h.List[messages[len(messages)-1].index].Text()
	if len(text) > maxAsked {
		return 0, false
	}
	until = h.rules.says(text, askedUntil)
	for sentence := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".!?;\n", r) }) {
		m := h.rules.submatch(sentence, askedTimes)
		if m == nil || !h.refersToCalls(sentence) {
			continue
		}
		for _, g := range m[1:] {
			n, err := strconv.Atoi(g)
			if err != nil {
				n = numerals[strings.ToLower(g)]
			}
			times = max(times, n)
		}
	}
	return times, until
}

// pronouns holds the pronouns that refer to a call in a sentence that names none.
var pronouns = map[string]bool{"it": true, "this": true, "that": true, "es": true, "das": true, "ihn": true, "sie": true, "le": true, "la": true, "lo": true}

// refersToCalls reports whether a sentence refers to one of the last turn's calls: it contains a word of the call or a
// pronoun.
func (h *history) refersToCalls(sentence string) bool {
	said := map[string]bool{}
	pronoun := false
	for _, w := range words(sentence) {
		said[w] = len(w) > 2
		pronoun = pronoun || pronouns[w]
	}
	steps := h.last().steps
	for i := range steps {
		line := steps[i].call.Line()
		if line == "" {
			line = steps[i].Tool + " " + steps[i].Arguments
		}
		for _, w := range words(line[:min(len(line), maxAsked)]) {
			if said[w] {
				return true
			}
		}
	}
	return pronoun
}

// words returns the lower-case words of a text, with compound names split.
func words(text string) (out []string) {
	for _, f := range strings.Fields(text) {
		out = append(out, trajectory.NameWords(f)...)
	}
	return out
}
