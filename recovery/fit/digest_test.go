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
	"github.com/rebound-llm/rebound/recovery/fit/agenttest"
	"github.com/rebound-llm/rebound/recovery/fit/count"
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
	raw, planted := agenttest.WithFacts(3, 300_000)
	c := newConversation(t, "synthetic", raw)
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
		for _, f := range planted.Constraints {
			if strings.Contains(textOf(c.raw(n)), f) {
				facts[f] = facts[f] || strings.Contains(d, f)
			}
		}
		now := textOf(out.Raw())
		for f := range facts {
			if !strings.Contains(now, f) {
				t.Errorf("digest %d has lost %q", rolled, f)
			}
		}
	}
	if rolled < 3 || len(facts) == 0 {
		t.Errorf("%d digests with %d facts", rolled, len(facts))
	}
	whole := textOf((&conversation{Tools: c.Tools, Messages: held}).raw(len(held)))
	kept, all := countPlanted(whole, planted)
	t.Logf("%d digests, one of the other; %d of %d facts survive", rolled, kept, all)
	if float64(kept) < 0.8*float64(all) {
		t.Errorf("only %d of %d facts survive", kept, all)
	}
}

// What was planted in a session survives in small windows without a summariser.
func TestDigestInSmallWindows(t *testing.T) {
	if fit.RaceEnabled {
		t.Skip("large, and nothing in it is parallel")
	}
	m, seeds := count.NewMeter(), uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for _, w := range []struct {
		window int
		least  float64
	}{{64_000, 1}, {32_000, 1}, {16_000, 0.95}, {8_000, 0.9}} {
		kept, all := 0, 0
		for seed := range seeds {
			raw, planted := agenttest.WithFacts(seed, 600_000)
			c := newConversation(t, fmt.Sprint("synthetic ", seed), raw)
			b := c.body(t, len(c.Messages))
			out, r, ok := fit.Compress(fit.Defaults(), b, m, simModel, w.window, w.window/8)
			if !ok || w.window < 64_000 && !slices.Contains(r.Tiers, fit.TierDigest) {
				t.Fatalf("%s: %v in a window of %d", c.name, r.Tiers, w.window)
			}
			verify(t, b, out)
			n, of := countPlanted(textOf(out.Raw()), planted)
			kept, all = kept+n, all+of
		}
		t.Logf("window %d: %d of %d facts survive", w.window, kept, all)
		if float64(kept) < w.least*float64(all) {
			t.Errorf("window %d: only %d of %d facts survive", w.window, kept, all)
		}
	}
}

// countPlanted returns how many facts of a generated session are in a text, and how many there are.
func countPlanted(text string, f agenttest.Facts) (kept, all int) {
	list := slices.Concat(f.Constraints, f.Unresolved, f.Paths)
	return countIn(text, list), len(list)
}
