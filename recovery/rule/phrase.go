package rule

import (
	"errors"
	"strings"
)

const (
	// maxGap limits the length of a gap, in bytes.
	maxGap = 90
	// maxTries limits the search for one wording, so that a text with many repetitions of its beginning stays cheap.
	maxTries = 64
	// maxAlternatives limits the alternatives of one wording with {a,b}.
	maxAlternatives = 200
)

// Border separates the messages of a text: no gap of a wording extends across it.
const Border = '¦'

// phrase is a wording to find in folded text: parts in this order, at most
// maxGap bytes apart.
type phrase []part

type part struct {
	text        string
	left, right bool // a word must begin at its start, end at its end
}

// newPhrases compiles a wording, one phrase for each of its alternatives.
func newPhrases(spelling string) ([]phrase, error) {
	spellings, err := alternatives(spelling)
	if err != nil {
		return nil, err
	}
	var out []phrase
	for _, s := range spellings {
		p, err := newPhrase(s)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// alternatives returns the spellings of a wording with its braces expanded.
func alternatives(s string) ([]string, error) {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}, nil
	}
	length := strings.IndexByte(s[open:], '}')
	if length < 0 {
		return nil, errors.New("a { has no }")
	}
	rest, err := alternatives(s[open+length+1:])
	if err != nil {
		return nil, err
	}
	choices := strings.Split(s[open+1:open+length], ",")
	if len(choices)*len(rest) > maxAlternatives {
		return nil, errors.New("stands for too many alternatives")
	}
	var out []string
	for _, choice := range choices {
		for _, r := range rest {
			out = append(out, s[:open]+choice+r)
		}
	}
	return out, nil
}

// expression reports whether a wording looks like a regular expression: it has an anchor, a character class, or ".*".
func expression(s string) bool {
	for _, sign := range [...]string{`\b`, `\d`, `\s`, `\w`, ".*", ".+", "(?"} {
		if strings.Contains(s, sign) {
			return true
		}
	}
	return strings.HasPrefix(s, "^") || strings.HasSuffix(s, "$")
}

func newPhrase(s string) (phrase, error) {
	if expression(s) {
		return nil, errors.New("is a regular expression: move it to patterns; a wording has plain words, with … for a gap")
	}
	var p phrase
	for piece := range strings.SplitSeq(strings.ReplaceAll(s, "...", "…"), "…") {
		var w part
		if len(piece) > 1 && piece[0] == '<' && isWord(piece[1]|0x20) {
			w.left, piece = true, piece[1:]
		}
		if n := len(piece); n > 1 && piece[n-1] == '>' && isWord(piece[n-2]|0x20) {
			w.right, piece = true, piece[:n-1]
		}
		if w.text = Fold(piece); w.text == "" {
			return nil, errors.New("is empty, before or after a gap")
		}
		p = append(p, w)
	}
	return p, nil
}

// String returns the wording in the syntax of a file.
func (p phrase) String() string {
	parts := make([]string, len(p))
	for i, w := range p {
		if parts[i] = w.text; w.left {
			parts[i] = "<" + parts[i]
		}
		if w.right {
			parts[i] += ">"
		}
	}
	return strings.Join(parts, "…")
}

// in reports whether the phrase occurs in text, which is folded.
func (p phrase) in(text string) bool {
	for from, tries := 0, 0; tries < maxTries; tries++ {
		start, end := p[0].find(text, from)
		if start < 0 {
			return false
		}
		if p.rest(text, end) {
			return true
		}
		from = start + 1
	}
	return false
}

// rest reports whether the other parts follow after the first one, which ends at end.
func (p phrase) rest(text string, end int) bool {
	for _, w := range p[1:] {
		reach := min(len(text), end+maxGap+len(w.text))
		if i := strings.IndexRune(text[end:reach], Border); i >= 0 {
			reach = end + i
		}
		// One more byte is needed to see whether a word ends there.
		start, stop := w.find(text[:min(len(text), reach+1)], end)
		if start < 0 || stop > reach {
			return false
		}
		end = stop
	}
	return true
}

// find returns the start and end of the part's first occurrence at or after from; start is -1 if there is none.
func (w part) find(text string, from int) (start, end int) {
	for range maxTries {
		i := strings.Index(text[from:], w.text)
		if i < 0 {
			break
		}
		i += from
		e := i + len(w.text)
		if !(w.left && i > 0 && isWord(text[i-1])) && !(w.right && e < len(text) && isWord(text[e])) {
			return i, e
		}
		from = i + 1
	}
	return -1, 0
}

// WordIn returns the offset of the first occurrence of a word, or of several words, in folded text, not as part of a longer
// word; -1 if there is none.
func WordIn(text, word string) int {
	i, _ := part{text: word, left: true, right: true}.find(text, 0)
	return i
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}
