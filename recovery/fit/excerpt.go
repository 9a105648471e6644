package fit

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// What makes a line worth keeping. Each is looked for in lines of a bounded
// length; what a line is about decides, not which tool printed it.
var (
	errorLine = regexp.MustCompile(`(?i)(?:error|exception|\b(?:fail(?:s|ed|ures?|ing)?|fatal|panic|traceback|cannot|could not|denied|not found|no such|` +
		`undefined|unresolved|invalid|` +
		`timed out|refused|assert\w*|unbalanced|not balanced|mismatch|warning))\b`)
	// preciseValue are values that nobody can guess: hashes, versions, numbers of some
	// length, amounts with a unit, colours, addresses.
	preciseValue = regexp.MustCompile(`\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{5,}\b|#[0-9a-fA-F]{6}\b|\bv?\d+\.\d+[\w.]*|\b\d{3,}\b|\b\d+ ?(?:ms|s|` +
		`[kKMG]i?B|%|passed|failed|errors?|` +
		`warnings?|tests?|tokens?|bytes|lines|files)\b|https?://`)
	// location are places: files with lines, and paths.
	location = regexp.MustCompile(`[\w./~@-]/[\w.@-]|[\w-]\.\w{1,4}[:(]\d`)
	// declaration are lines of sources that name what is there, and rules.
	declaration = regexp.MustCompile(`^\s*(?:export |public |private |static |async |pub |type |const |let |var |func |def |class |interface |struct |enum |` +
		`import |from |#+ |[-*] )|` +
		`\b(?i:must|never|always|only|do not|don't)\b`)
	// verdictLine is how runs are summed up.
	verdictLine = regexp.MustCompile(`(?i)^\W*(?:done|ok|success\w*|total|result|summary|passed|failed|exit|wrote|created|updated|changed|deleted|applied|` +
		`built|finished|command exited)\b`)
)

// salience is how much a line says that is not said elsewhere.
func salience(line string) (score float64) {
	trimmed := strings.TrimSpace(line)
	if letters := countAlnum(trimmed); letters < 3 {
		return 0
	}
	score = 1
	if errorLine.MatchString(trimmed) {
		score += 3
	}
	// Most lines have none of the characters without which an expression cannot match.
	if strings.ContainsAny(trimmed, "0123456789#/") {
		if n := len(preciseValue.FindAllStringIndex(trimmed, 3)); n > 0 {
			score += 1 + 0.5*float64(n)
		}
	}
	if strings.ContainsAny(trimmed, "/.") && location.MatchString(trimmed) {
		score++
	}
	if declaration.MatchString(line) {
		score++
	}
	if verdictLine.MatchString(trimmed) {
		score += 1.5
	}
	return score
}

// countAlnum counts letters and digits, up to a few.
func countAlnum(s string) (n int) {
	for _, r := range s {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127 {
			if n++; n == 8 {
				break
			}
		}
	}
	return n
}

// Bounds of an excerpt.
const (
	maxLine     = 400       // bytes of a line that are kept together
	maxSearched = 512 << 10 // bytes at each end of a text whose lines are weighed
	edgeScore   = 100       // what the first and the last line are worth: more than any other
)

// gap stands for lines that an excerpt leaves out.
const gap = "[…]"

// piece is a line of a text, or a part of a long one.
type piece struct {
	text  string
	score float64
}

// excerpts remembers what the lines of texts are worth, while one history is cut to
// one length after the other. One goroutine uses it.
type excerpts map[string][]piece

// pieces are those of a text.
func (e excerpts) pieces(text string) []piece {
	if list, ok := e[text]; ok {
		return list
	}
	e[text] = pieces(text)
	return e[text]
}

// extract is at most about so many bytes of a text: the lines that say most, and
// more readily those at its ends, in their order. The same text and room give the
// same excerpt.
func (e excerpts) extract(text string, room int) string {
	if len(text) <= room {
		return text
	}
	list := e.pieces(text)
	ranked := make([]int, len(list))
	for i := range list {
		ranked[i] = i
	}
	worth := func(i int) float64 { // how it began, and what it came to, first
		if i == 0 || i == len(list)-1 {
			return edgeScore
		}
		return list[i].score
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(worth(b), worth(a)) })
	keep := make([]bool, len(list))
	for _, i := range ranked {
		cost := len(list[i].text) + 1
		if i > 0 && !keep[i-1] {
			cost += len(gap) + 1
		}
		if cost > room {
			if room < 40 {
				break // what is so short says little, and costs a gap
			}
			continue
		}
		keep[i] = true
		room -= cost
	}
	var b strings.Builder
	left := false
	for i, p := range list {
		if !keep[i] {
			left = true
			continue
		}
		if left {
			b.WriteString(gap + "\n")
		}
		left = false
		b.WriteString(p.text)
		b.WriteByte('\n')
	}
	if left {
		b.WriteString(gap)
	}
	return strings.TrimRight(b.String(), "\n")
}

// pieces are the lines of a text with what each is worth. Of what repeats itself
// but for numbers the first ones count.
func pieces(text string) (list []piece) {
	for line := range strings.Lines(bothEnds(text, maxSearched)) {
		line = strings.TrimRight(line, " \t\r\n")
		for len(line) > maxLine {
			cut := recovery.Head(line, maxLine)
			if space := strings.LastIndexByte(cut, ' '); space > maxLine/2 {
				cut = cut[:space+1]
			}
			if cut == "" {
				break
			}
			list = append(list, piece{text: cut})
			line = line[len(cut):]
		}
		if strings.TrimSpace(line) != "" {
			list = append(list, piece{text: line})
		}
	}
	seen := map[string]int{}
	for i := range list {
		p := &list[i]
		p.score = salience(p.text)
		if p.score == 0 {
			continue
		}
		like := digits.ReplaceAllString(recovery.Head(strings.TrimSpace(p.text), 80), "0")
		if n := seen[like]; n > 0 {
			p.score /= float64(1 + n)
		}
		if len(seen) < 8192 {
			seen[like]++
		}
		if edge := min(i, len(list)-1-i); edge < 4 {
			p.score += 2 - float64(edge)/2
		}
		p.score /= 1 + float64(len(p.text))/160
	}
	return list
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// shorten is the text in place of s that keeps about room bytes of it; ok is
// false where that saves nothing. what says what it was, where that is not plain.
func (e excerpts) shorten(what, s string, room int) (text string, ok bool) {
	kept := e.extract(s, room)
	if len(kept) >= len(s) {
		return "", false
	}
	n := utf8.RuneCountInString(s)
	text = mark(what + strconv.Itoa(max(0, n-utf8.RuneCountInString(kept))) + " of " + characters(n) + " removed:\n" + kept)
	return text, len(text) < len(s)
}
