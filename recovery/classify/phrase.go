package classify

import "strings"

// maxGap is how many bytes a "…" in a phrase may stand for.
const maxGap = 90

// phrase is a wording to find in folded text. Its parts stand in this order,
// at most maxGap bytes apart and within one layer. A part that begins or ends
// with "|" begins or ends at a word's edge.
type phrase []part

type part struct {
	text        string
	left, right bool // word edges
}

// newPhrase compiles the spelling used in the tables: lower case, single
// quotes, "…" for a gap.
func newPhrase(s string) phrase {
	var p phrase
	for word := range strings.SplitSeq(s, "…") {
		var w part
		if t, ok := strings.CutPrefix(word, "|"); ok {
			w.left, word = true, t
		}
		if t, ok := strings.CutSuffix(word, "|"); ok {
			w.right, word = true, t
		}
		w.text = word
		p = append(p, w)
	}
	return p
}

func newPhrases(spellings []string) []phrase {
	out := make([]phrase, len(spellings))
	for i, s := range spellings {
		out[i] = newPhrase(s)
	}
	return out
}

// in reports whether the phrase occurs in text, which is folded.
func (p phrase) in(text string) bool {
	// Each start of the first part gets one try; the number of tries is
	// bounded so that a text made of nothing but starts stays cheap.
	for from, tries := 0, 0; tries < 64; tries++ {
		i, end := p[0].find(text, from)
		if i < 0 {
			return false
		}
		if p.rest(text, end) {
			return true
		}
		from = i + 1
	}
	return false
}

func (p phrase) rest(text string, end int) bool {
	for _, w := range p[1:] {
		window := text[end:min(len(text), end+maxGap+len(w.text))]
		if j := strings.IndexRune(window, layerMark); j >= 0 {
			window = window[:j]
		}
		// The edge check looks outside the window, so search in the whole text.
		i, e := w.find(text[:end+len(window)], end)
		if i < 0 {
			return false
		}
		if w.right && e == end+len(window) && e < len(text) && wordAt(text, e) {
			return false
		}
		end = e
	}
	return true
}

// find returns where the part first occurs at or after from, and where it ends.
func (w part) find(text string, from int) (start, end int) {
	for tries := 0; tries < 64; tries++ {
		i := strings.Index(text[from:], w.text)
		if i < 0 {
			return -1, 0
		}
		i += from
		e := i + len(w.text)
		if !(w.left && i > 0 && wordBefore(text, i)) && !(w.right && e < len(text) && wordAt(text, e)) {
			return i, e
		}
		from = i + 1
	}
	return -1, 0
}

func wordAt(s string, i int) bool     { return isWord(s[i]) }
func wordBefore(s string, i int) bool { return isWord(s[i-1]) }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
}

func anyIn(ps []phrase, text string) bool {
	for _, p := range ps {
		if p.in(text) {
			return true
		}
	}
	return false
}
