package inspect

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestWordsAlone: whether a call failed, for results without an exit code, whose command is known. With the exit
// code in front nearly all are seen. testdata/README.md has the numbers of the first run.
func TestWordsAlone(t *testing.T) {
	for _, c := range []struct {
		round      string
		recall     float64 // with the words alone
		withCode   float64
		flagged    []string // successes that are called failures
		successful int
	}{
		{"round25", 0.95, 0.98, []string{"za0131", "za0132"}, 35},
		{"round26", 0.84, 0.96, []string{"zb0081", "zb0096"}, 38},
		{"round27", 0.63, 0.93, nil, 28},
	} {
		var flagged []string
		failed, seen, coded, successes := 0, 0, 0, 0
		for _, r := range rows(t, c.round) {
			result := toolResult(r)
			if r.Cmd != "" {
				args, _ := json.Marshal(map[string]string{"command": r.Cmd})
				result.Arguments = string(args)
			}
			is := Judge(result).Failed
			if !r.Failed {
				if successes++; is {
					flagged = append(flagged, r.ID)
				}
				continue
			}
			if failed++; is {
				seen++
			} else if *wrongRows == c.round {
				t.Logf("%s %s %q: %.300q", r.ID, r.Tool, r.Cmd, r.Content)
			}
			if r.Cmd != "" {
				result.Content = "Exit code 1\n" + result.Content
			}
			if Judge(result).Failed {
				coded++
			}
		}
		t.Logf("%s: %d failed, %d seen by their words (%.3f), %d with the exit code (%.3f); %d of %d successes called failures", c.round,
			failed, seen, ratio(seen, failed), coded, ratio(coded, failed), len(flagged), successes)
		if ratio(seen, failed) < c.recall || ratio(coded, failed) < c.withCode || successes != c.successful || !slices.Equal(flagged, c.flagged) {
			t.Errorf("%s: below the floor, or others than %q are called failures: %q", c.round, c.flagged, flagged)
		}
	}
}
