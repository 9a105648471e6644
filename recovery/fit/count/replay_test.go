package count

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// recording is a session with its upstream's reports.
type recording struct {
	Tools    json.RawMessage   `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
	Usage    []struct {
		Index      int    `json:"index"`
		Prompt     int    `json:"prompt_tokens"`
		Completion int    `json:"completion_tokens"`
		Cached     int    `json:"cached_tokens"`
		Model      string `json:"model"`
	} `json:"usage"`
}

func record(t testing.TB, name string) recording {
	t.Helper()
	var r recording
	if err := json.Unmarshal(recoverytest.Gunzip(t, filepath.Join("..", "testdata", "usage", name+".json.gz")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// request returns the request with the first n messages.
func (r recording) request(t testing.TB, n int) *transcript.Body {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "messages": r.Messages[:n], "tools": r.Tools})
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func parse(t testing.TB, raw string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, raw, transcript.Chat)
}

// replayErrors are the relative errors of a session's estimates.
type replayErrors struct {
	raw, first, anchored []float64
	doubts               int
}

// replay observes a session request by request, and compares the estimate before each with
// the report.
func replay(t testing.TB, m *Meter, r recording) (e replayErrors) {
	t.Helper()
	var first, anchor Anchor
	for i, u := range r.Usage {
		if raceEnabled && i == 100 {
			break // the race detector makes it slow
		}
		b := r.request(t, u.Index)
		off := func(n int) float64 { return math.Abs(float64(n-u.Prompt)) / float64(u.Prompt) }
		e.raw = append(e.raw, off(m.Measure(b, u.Model).Total))
		if first.Reported > 0 {
			n, ok := m.Anchored(b, u.Model, first)
			if !ok {
				t.Fatalf("request %d does not begin with the first", u.Index)
			}
			e.first = append(e.first, off(n))
			if n, ok = m.Anchored(b, u.Model, anchor); !ok {
				t.Fatalf("request %d does not begin with the one before", u.Index)
			}
			e.anchored = append(e.anchored, off(n))
		}
		next, truncated := m.Observe(b, u.Model, anchor, recovery.Usage{Input: u.Prompt, Output: u.Completion, CacheRead: u.Cached})
		if truncated {
			t.Errorf("request %d: %d tokens were taken for a truncated prompt", u.Index, u.Prompt)
		}
		if next.Doubt != nil {
			e.doubts++
		}
		anchor = next
		if first.Reported == 0 {
			first = anchor
		}
	}
	return e
}

func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[int(q*float64(len(list)-1))]
}

// log logs errors in percent: the median and the 90th percentile.
func (e replayErrors) log(t *testing.T, k factor) {
	t.Helper()
	show := func(list []float64) string {
		return fmt.Sprintf("%.3f (%.3f) %%", 100*quantile(list, .5), 100*quantile(list, .9))
	}
	t.Logf("%d requests; median (90 %%) error: uncalibrated %s, from the first answer on %s, anchored %s; %d doubts; scale %.3f",
		len(e.raw), show(e.raw), show(e.first), show(e.anchored), e.doubts, k.Scale)
}

const (
	wholeSession = "pi-large-session-seg0-full"
	slicePattern = "pi-large-session-seg0-slice%d"
	sliceCount   = 5
)

// Estimates of a real session match what Claude's provider reported, without calibration
// before. The history has answers that the client did not send again, so that the first
// report alone does not predict the later ones.
func TestReplayOfASession(t *testing.T) {
	m := meter()
	e := replay(t, m, record(t, wholeSession))
	e.log(t, m.calibration.factor("claude-sonnet-4-5"))
	if n := quantile(e.anchored, .5); n > 0.002 {
		t.Errorf("the median error is %.3f %%", 100*n)
	}
	if n := quantile(e.anchored, .95); n > 0.01 {
		t.Errorf("one of twenty is %.3f %% off", 100*n)
	}
	if e.doubts > 5 {
		t.Errorf("%d reports were doubted", e.doubts)
	}
}

// The same holds for sessions whose history was sent as it is, with a new model and with
// one that another session has calibrated.
func TestReplayOfSlices(t *testing.T) {
	for _, known := range []bool{false, true} {
		var all replayErrors
		for i := range sliceCount {
			m := meter()
			if known {
				replay(t, m, record(t, fmt.Sprintf(slicePattern, (i+1)%sliceCount)))
			}
			e := replay(t, m, record(t, fmt.Sprintf(slicePattern, i)))
			e.log(t, m.calibration.factor("claude-sonnet-4-5"))
			if n := quantile(e.anchored, .5); n > 0.002 {
				t.Errorf("slice %d: the median error is %.3f %%", i, 100*n)
			}
			all.first, all.anchored = append(all.first, e.first...), append(all.anchored, e.anchored...)
		}
		if n := quantile(all.first, .5); n > 0.01 {
			t.Errorf("from the first answer on the median error is %.3f %%", 100*n)
		}
		if n := quantile(all.anchored, .5); n > 0.002 {
			t.Errorf("anchored the median error is %.3f %%", 100*n)
		}
	}
}
