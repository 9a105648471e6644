package fit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// The patterns that make a line worth keeping, whichever tool printed it. They run on lines
// of limited length.
var (
	errorLine = recovery.NewPattern(`(?i)(?:error|exception|\b(?:fail(?:s|ed|ures?|ing)?|fatal|panic|traceback|cannot|could not|denied|not found|no such|` +
		`undefined|unresolved|invalid|` +
		`timed out|refused|assert\w*|unbalanced|not balanced|mismatch|warning))\b`)
	// preciseValue matches values that a model cannot guess: hashes, versions, longer
	// numbers, amounts with a unit, colours, URLs.
	preciseValue = recovery.NewPattern(`\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{5,}\b|#[0-9a-fA-F]{6}\b|\bv?\d+\.\d+[\w.]*|\b\d{3,}\b|\b\d+ ?(?:ms|s|` +
		`[kKMG]i?B|%|passed|failed|errors?|` +
		`warnings?|tests?|tokens?|bytes|lines|files)\b|https?://`)
	// location matches paths, and files with a line number.
	location = recovery.NewPattern(`[\w./~@-]/[\w.@-]|[\w-]\.\w{1,4}[:(]\d`)
	// declaration matches declarations in source code, headings, list items and rules.
	declaration = recovery.NewPattern(`^\s*(?:export |public |private |static |async |pub |type |const |let |var |func |def |class |interface |struct |enum |` +
		`import |from |#+ |[-*] )|` +
		`\b(?i:must|never|always|only|do not|don't)\b`)
	// verdictLine matches lines that sum up a run.
	verdictLine = recovery.NewPattern(`(?i)^\W*(?:done|ok|success\w*|total|result|summary|passed|failed|exit|wrote|created|updated|changed|deleted|applied|` +
		`built|finished|command exited)\b`)
)

// salience scores how informative a line is; 0 is not at all.
func salience(line string) (score float64) {
	trimmed := strings.TrimSpace(line)
	if letters := countAlnum(trimmed); letters < 3 {
		return 0
	}
	score = 1
	if errorLine.MatchString(trimmed) {
		score += 3
	}
	// The cheap checks spare most lines the regular expressions.
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

// countAlnum counts letters and digits, up to 8.
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

// The limits of an excerpt.
const (
	maxLine     = 400       // bytes; longer lines are split
	maxSearched = 512 << 10 // bytes at each end of a text that are searched
	edgeScore   = 100       // score of the first and the last line, above all others
)

// gap marks lines that an excerpt leaves out.
const gap = "[…]"

// piece is a line of a text, or a part of a long one.
type piece struct {
	text  string
	score float64
}

// excerpts caches the scored lines of texts, since the shrinker tries one length after
// the other. Not safe for concurrent use.
type excerpts map[string][]piece

// pieces returns the scored lines of a text, from the cache if possible.
func (e excerpts) pieces(text string) []piece {
	if list, ok := e[text]; ok {
		return list
	}
	e[text] = pieces(text)
	return e[text]
}

// extract returns an excerpt of at most about room bytes: the first and last line and those
// with the highest scores, in their order. It is deterministic.
func (e excerpts) extract(text string, room int) string {
	if len(text) <= room {
		return text
	}
	list := e.pieces(text)
	ranked := make([]int, len(list))
	for i := range list {
		ranked[i] = i
	}
	worth := func(i int) float64 {
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
				break // shorter lines say little, and each may cost a gap
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

// pieces splits a text into lines and scores them. Lines that repeat earlier ones except for
// numbers score less.
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

var digits = recovery.NewPattern(`[0-9a-f]*[0-9][0-9a-f]*`)

// shorten returns a mark with an excerpt of s of about room bytes; ok is false if that saves
// nothing. what is put before the number of removed characters.
func (e excerpts) shorten(what, s string, room int) (text string, ok bool) {
	kept := e.extract(s, room)
	if len(kept) >= len(s) {
		return "", false
	}
	n := utf8.RuneCountInString(s)
	text = mark(what + strconv.Itoa(max(0, n-utf8.RuneCountInString(kept))) + " of " + characters(n) + " removed:\n" + kept)
	return text, len(text) < len(s)
}
