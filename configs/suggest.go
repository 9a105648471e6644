package configs

import (
	"slices"
	"strings"
)

// nearest returns the candidate that a name was probably meant to be, or "".
func nearest(name string, candidates []string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "")
	wanted := plain.Replace(strings.ToLower(name))
	if wanted == "" || len(wanted) > 64 {
		return ""
	}
	best, bestDistance := "", len(wanted)/3+1
	for _, c := range candidates {
		have := plain.Replace(strings.ToLower(c))
		d := distance(wanted, have)
		if d > 0 && len(wanted) >= 3 && (strings.HasPrefix(have, wanted) || strings.HasPrefix(wanted, have) && len(have) >= 3) {
			d = 1 // upstream for upstreams
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return best
	}
	// base_url for url, max_attempts for attempts
	for _, word := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		if slices.Contains(candidates, word) {
			return word
		}
	}
	return ""
}

// distance is the number of single-character edits, swaps of neighbours
// included, between two short strings.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
