package trajectory

import (
	"strings"
	"unicode"
)

// Distance returns the number of insertions, deletions, replacements and swaps of adjacent bytes that turn a
// into b (optimal string alignment), or limit+1 if there are more. It takes time proportional to the product of
// both lengths; callers limit them.
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

// MaxTypos returns how many edits a misspelled name may need: about a quarter of its letters, at least one and at
// most three.
func MaxTypos(name string) int { return min(3, max(1, len(name)/4)) }

// Nearest returns the candidate that a name probably means, ignoring case and punctuation, or "". The first of
// equally near candidates wins.
func Nearest(name string, candidates []string) string {
	wanted := Plain(name)
	if len(wanted) < 2 || len(wanted) > 64 {
		return ""
	}
	best, least := "", MaxTypos(wanted)+1
	for _, c := range candidates {
		if d := Distance(wanted, Plain(c), least-1); d < least && c != name {
			best, least = c, d
		}
	}
	return best
}

// Plain returns a name without punctuation, in lower case.
func Plain(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
