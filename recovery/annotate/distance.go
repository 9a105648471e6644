package annotate

import "slices"

// anyOf reports whether the lists have a word in common.
func anyOf(words []string, known ...string) bool {
	for _, w := range words {
		if slices.Contains(known, w) {
			return true
		}
	}
	return false
}
