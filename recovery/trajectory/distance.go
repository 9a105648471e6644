package trajectory

import (
	"strings"
	"unicode"
)

// Distance is the number of insertions, deletions, replacements and swaps of
// neighbouring bytes that make b of a (optimal string alignment), or limit+1 if
// there are more. It takes time in proportion to the product of both lengths:
// callers bound them.
func Distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	width := len(b) + 1
	rows := make([]int, 3*width)
	before, last, row := rows[:width], rows[width:2*width], rows[2*width:]
	for j := range last {
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
	return min(last[len(b)], limit+1)
}

// Slips is how many edits a slip of the pen in a name may have: about a quarter
// of its letters, at least one and at most three.
func Slips(name string) int { return min(3, max(1, len(name)/4)) }

// Nearest is the candidate that a name was probably meant to be, whatever its
// case and punctuation, or "". The first of equals wins.
func Nearest(name string, candidates []string) string {
	wanted := Plain(name)
	if len(wanted) < 2 || len(wanted) > 64 {
		return ""
	}
	best, least := "", Slips(wanted)+1
	for _, c := range candidates {
		if d := Distance(wanted, Plain(c), least-1); d < least && c != name {
			best, least = c, d
		}
	}
	return best
}

// Plain is a name without case and punctuation.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
