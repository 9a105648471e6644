package configs

import (
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// nearest returns the candidate that is most similar to a misspelt name, or "".
func nearest(name string, candidates []string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "")
	wanted := plain.Replace(strings.ToLower(name))
	if wanted == "" || len(wanted) > 64 {
		return ""
	}
	best, bestDistance := "", len(wanted)/3+1
	for _, c := range candidates {
		have := plain.Replace(strings.ToLower(c))
		d := trajectory.Distance(wanted, have, bestDistance)
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
