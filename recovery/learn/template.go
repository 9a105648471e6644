package learn

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// Vocabulary is the set of words that a template may contain. It is read-only.
type Vocabulary map[string]bool

// Limits of a template.
const (
	maxTokens = 24
	maxWord   = 32
	wildcard  = "<*>"
)

// NewVocabulary returns the public words: the words in wordings and patterns of rules, and words that occur in
// the examples of two rules.
func NewVocabulary(sets ...rule.Set) Vocabulary {
	v, seen := Vocabulary{}, map[string]string{}
	for _, s := range sets {
		for _, lists := range []map[string][]string{s.Words, s.Pieces} {
			for _, list := range lists {
				v.add(list)
			}
		}
		for _, r := range s.Rules {
			v.add(slices.Concat(r.Any, r.And, r.Patterns))
			for _, w := range words(strings.Join(r.Examples, " ")) {
				if by, ok := seen[w]; ok && by != r.Name {
					v[w] = true
				}
				seen[w] = r.Name
			}
		}
	}
	return v
}

func (v Vocabulary) add(texts []string) {
	for _, w := range words(strings.Join(texts, " ")) {
		v[w] = true
	}
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
}

// Template returns the public words of an error line, equal for all lines that differ only in other words. Each
// run of words that contain anything but letters, or are not in the vocabulary, becomes one <*>.
func (v Vocabulary) Template(line string) string {
	var b strings.Builder
	tokens, hidden := 0, false
	for w := range strings.FieldsSeq(strings.ToLower(line)) {
		if tokens == maxTokens {
			break
		}
		w = strings.Trim(w, ".,:;!?()[]{}<>'\"`")
		if w == "" {
			continue
		}
		if !v.has(w) {
			if hidden {
				continue
			}
			w = wildcard
		}
		if hidden = w == wildcard; b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w)
		tokens++
	}
	return b.String()
}

func (v Vocabulary) has(w string) bool { return len(w) <= maxWord && v[w] }

// permits reports whether a text is a valid template.
func (v Vocabulary) permits(template string) bool {
	n := 0
	for w := range strings.SplitSeq(template, " ") {
		if n++; n > maxTokens || w != wildcard && !v.has(w) {
			return false
		}
	}
	return true
}
