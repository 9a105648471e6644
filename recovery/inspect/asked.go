package inspect

import (
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// maxAsked bounds the message that may ask to repeat something, in bytes.
const maxAsked = 4 << 10

// numerals are numbers that persons write as words.
var numerals = map[string]int{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
	"twenty": 20, "fifty": 50, "hundred": 100}

// asked is what the person's last message says on repeating the calls of the last turn:
// how often, if it names the call or says no other, and whether until something comes of it.
func (h *history) asked() (times int, until bool) {
	persons := h.personMessages()
	if len(persons) == 0 {
		return 0, false
	}
	text := h.List[persons[len(persons)-1].index].Text()
	if len(text) > maxAsked {
		return 0, false
	}
	until = h.rules.says(text, askedUntil)
	for sentence := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".!?;\n", r) }) {
		m := h.rules.submatch(sentence, askedTimes)
		if m == nil || !h.means(sentence) {
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

// it stands for the call in a sentence that names none.
var it = map[string]bool{"it": true, "this": true, "that": true, "es": true, "das": true, "ihn": true, "sie": true, "le": true, "la": true, "lo": true}

// means reports whether a sentence is about one of the last turn's calls: it has a word
// of it, or one that stands for it.
func (h *history) means(sentence string) bool {
	said := map[string]bool{}
	pronoun := false
	for _, w := range words(sentence) {
		said[w] = len(w) > 2
		pronoun = pronoun || it[w]
	}
	steps := h.last().steps
	for i := range steps {
		line := steps[i].made.Line()
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

// words are the lower-case words of a text, those of names apart.
func words(text string) (out []string) {
	for _, f := range strings.Fields(text) {
		out = append(out, trajectory.NameWords(f)...)
	}
	return out
}
