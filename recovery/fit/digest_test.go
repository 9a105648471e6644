package fit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/fit/probetest"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/memory"
)

// digestsIn returns the digests in a request.
func digestsIn(b *transcript.Body) (list []string) {
	for _, m := range b.Messages() {
		var mark struct {
			Compressed bool `json:"_compressed"`
			Summary    string
		}
		if json.Unmarshal([]byte(m.Text()), &mark) == nil && mark.Compressed && strings.HasPrefix(mark.Summary, "Digest of ") {
			list = append(list, mark.Summary)
		}
	}
	return list
}

// Without a summariser, or with a useless one, a session overflows at most twice, and its
// edits stay the same on every replica.
func TestDigestSticky(t *testing.T) {
	if testing.Short() {
		t.Skip("replays whole sessions")
	}
	useless := func(p recovery.Prompt) (string, error) {
		switch len(p.User) % 3 {
		case 0:
			return "", errors.New("no")
		case 1:
			return "", nil
		}
		return strings.Repeat("la la ", 50), nil
	}
	list := []*conversation{synthetic(t, 7, 300_000)}
	if !fit.RaceEnabled {
		list = append(list, recorded(t)[:5]...)
	}
	for _, c := range list {
		for _, summaries := range []string{"none", "useless"} {
			for _, window := range []int{32_000, 20_000} {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, summaries, window), func(t *testing.T) {
					t.Parallel()
					var teller *fakeSummarizer
					if summaries == "useless" {
						teller = newFakeSummarizer()
						teller.answer = useless
					}
					st := memory.New(memory.Config{})
					defer st.Close()
					seen := fit.NewWindows()
					var fitters []*fit.Fitter
					for range 2 {
						f := fit.New(fit.Defaults(), fit.Parts{Meter: count.NewMeter(), Store: fit.Replica(t, st), Windows: seen})
						defer f.Close(context.Background())
						fitters = append(fitters, f)
					}
					r := &replayer{provider: newProvider(window), summarizer: teller, session: "s"}
					turns := c.turns()
					every := max(1, len(turns)/60)
					for i, n := range turns {
						if i%every == 0 {
							r.fitter = fitters[i%2]
							r.send(t, c.body(t, n))
						}
					}
					if r.failed > 0 || r.provider.overflow > 2 {
						t.Errorf("%d requests failed, %d overflows", r.failed, r.provider.overflow)
					}
					digests := 0
					for i := 1; i < len(r.sent); i++ {
						if had := len(r.sent[i-1].Messages()); !slices.Contains(r.edits, i) && commonMessages(r.sent[i-1], r.sent[i]) < had {
							t.Errorf("request %d repeats %d of the %d messages before", i, commonMessages(r.sent[i-1], r.sent[i]), had)
						}
						if len(digestsIn(r.sent[i])) > 0 {
							digests++
						}
					}
					t.Logf("%d requests, %d with a digest, edits at %v, %d overflows", len(r.sent), digests, r.edits, r.provider.overflow)
				})
			}
		}
	}
}

// The content of a digest survives later digests, even if the client's history has only the
// digest.
func TestDigestRolls(t *testing.T) {
	m := count.NewMeter()
	c := synthetic(t, 3, 300_000)
	var held []json.RawMessage // the client's history, rewritten each time
	var lastText string
	rolled, at := 0, 0
	facts := map[string]bool{}
	for _, n := range c.turns() {
		held = append(held, c.Messages[at:n]...)
		at = n
		grown := &conversation{Tools: c.Tools, Messages: held}
		b := grown.body(t, len(held))
		out, _, ok := fit.Compress(fit.Defaults(), b, m, simModel, 8_000, 1000)
		if !ok {
			t.Fatalf("%d messages are not fitted", len(held))
		}
		if out == b {
			continue
		}
		verify(t, b, out)
		held = nil
		for _, msg := range out.Messages() {
			held = append(held, bytes.Clone(msg.Raw()))
		}
		d := strings.Join(digestsIn(out), "\n")
		if d == "" || d == lastText {
			continue
		}
		if len(digestsIn(out)) != 1 {
			t.Errorf("%d digests", len(digestsIn(out)))
		}
		rolled++
		lastText = d
		for _, p := range probetest.Probes(1, c.raw(n)) {
			if p.Kind == probetest.Constraint {
				facts[p.Text] = facts[p.Text] || strings.Contains(d, p.Text)
			}
		}
		now := probetest.Text(out.Raw())
		for f := range facts {
			if !strings.Contains(now, f) {
				t.Errorf("digest %d has lost %q", rolled, f)
			}
		}
	}
	if rolled < 3 || len(facts) == 0 {
		t.Errorf("%d digests with %d facts", rolled, len(facts))
	}
	whole := probetest.Text((&conversation{Tools: c.Tools, Messages: held}).raw(len(held)))
	kept, all := 0, 0
	for seed := range uint64(4) {
		for _, p := range probetest.Probes(seed, c.raw(len(c.Messages))) {
			if all++; probetest.Present(p, whole) {
				kept++
			} else {
				t.Logf("lost: %s %q", p.Kind, p.Text)
			}
		}
	}
	t.Logf("%d digests, one of the other; %d of %d facts survive", rolled, kept, all)
	if float64(kept) < 0.8*float64(all) {
		t.Errorf("only %d of %d facts survive", kept, all)
	}
}

// Facts survive in small windows without a summariser.
func TestDigestProbes(t *testing.T) {
	if testing.Short() {
		t.Skip("replays whole sessions")
	}
	if fit.RaceEnabled {
		t.Skip("large, and nothing in it is parallel")
	}
	m := count.NewMeter()
	list := recorded(t)
	for seed := range uint64(3) {
		list = append(list, synthetic(t, seed, 600_000))
	}
	for _, w := range []struct {
		window int
		least  float64
	}{{64_000, 0.95}, {32_000, 0.95}, {16_000, 0.85}, {8_000, 0.6}} {
		var kept, left, all, digests int
		for _, c := range list {
			b := c.body(t, len(c.Messages))
			out, r, ok := fit.Compress(fit.Defaults(), b, m, simModel, w.window, w.window/8)
			if !ok || !slices.Contains(r.Tiers, fit.TierDigest) {
				continue
			}
			digests++
			k, n := countSurviving(t, c, out.Raw(), "the digest")
			d, _ := countSurviving(t, c, probetest.DropOldest(c.raw(len(c.Messages)), len(out.Raw())), "")
			kept, all, left = kept+k, all+n, left+d
		}
		fitted, dropped := float64(kept)/float64(all), float64(left)/float64(all)
		t.Logf("window %d: %d digests, %.3f of %d facts survive, %.3f when the oldest are dropped", w.window, digests, fitted, all, dropped)
		if digests == 0 || fitted < w.least || fitted < dropped+0.2 {
			t.Errorf("window %d: %d digests, %.3f survive, %.3f when the oldest are dropped", w.window, digests, fitted, dropped)
		}
	}
}
