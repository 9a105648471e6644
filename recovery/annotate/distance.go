package annotate

import (
	"slices"
	"strings"
)

// distance is the number of single-byte edits, swaps of neighbours included,
// between two strings, or limit+1 if there are more. Long ones count as far.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit || len(a) > 96 || len(b) > 96 {
		return limit + 1
	}
	var rows [3][98]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			best = min(best, d)
		}
		if best > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// near is how many edits a slip of the pen may have: about a quarter.
func near(name string) int { return min(3, max(1, len(name)/4)) }

// nearest is the candidate that a name was probably meant to be, or "". The
// first of equals wins.
func nearest(name string, candidates []string) string {
	wanted := plainName(name)
	if len(wanted) < 2 || len(wanted) > 64 {
		return ""
	}
	best, least := "", near(wanted)+1
	for _, c := range candidates {
		if d := distance(wanted, plainName(c), least-1); d < least && c != name {
			best, least = c, d
		}
	}
	return best
}

// plainName is a name without case and punctuation.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '-' || r == '.' || r == ' ' || r == '/' || r == ':':
			return -1
		}
		return r
	}, name)
}

// anyOf reports whether the lists have a word in common.
func anyOf(words []string, known ...string) bool {
	for _, w := range words {
		if slices.Contains(known, w) {
			return true
		}
	}
	return false
}
