package fit_test

import (
	"context"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/fit/probetest"
)

// fitToShare fits a conversation to a share of its size in one step. session is its session id, or "".
func fitToShare(t *testing.T, c *conversation, share float64, session string) []byte {
	t.Helper()
	cfg := fit.Defaults()
	cfg.TargetShare = share
	cfg.KeepRecent = share / 2.5
	m := count.NewMeter()
	f := fit.New(cfg, fit.Parts{Meter: m})
	defer f.Close(context.Background())
	b := c.body(t, len(c.Messages))
	total := m.Measure(b, simModel).Total
	x := &recovery.Exchange{Request: recovery.Request{Body: b, Model: simModel, Mode: recovery.ModeAct, Started: time.Now()},
		Conversation: recovery.Conversation{Session: session}, Completer: newFakeSummarizer(),
		Candidates: []recovery.Choice{{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: "u", Model: simModel}}}}}
	limit := total - 1 + 4096
	out := f.Fit(context.Background(), x, &x.Candidates[0], &recovery.Failure{Diagnosis: recovery.Diagnosis{
		Spec: &recovery.Spec{Class: recovery.ContextLengthExceeded}, Facts: recovery.Facts{LimitTokens: limit, InputTokens: total, RequestedTokens: total + 4096}}})
	if out == nil {
		return nil
	}
	verify(t, b, out.Body)
	t.Logf("%s: %d -> %d tokens, %v, %d steps", c.name, out.Before, out.After, out.Tiers, out.Steps)
	return out.Body.Raw()
}

// countSurviving returns how many of a session's probes are in the rewritten request, and how
// many there are. With a name it logs the others.
func countSurviving(t *testing.T, c *conversation, rewritten []byte, name string) (kept, all int) {
	t.Helper()
	whole := c.raw(len(c.Messages))
	text := probetest.Text(rewritten)
	for seed := range uint64(4) {
		for _, p := range probetest.Probes(seed, whole) {
			all++
			if probetest.Present(p, text) {
				kept++
			} else if name != "" {
				t.Logf("lost by %s: %s %q of message %d", name, p.Kind, p.Text, p.Message)
			}
		}
	}
	return kept, all
}

// Nearly all probed facts survive fitting to a half and to a quarter, many more than if the
// oldest messages are dropped. The summariser contributes next to nothing here.
func TestProbes(t *testing.T) {
	if fit.RaceEnabled {
		t.Skip("large, and nothing in it is parallel")
	}
	list := recorded(t)
	for seed := range uint64(3) {
		list = append(list, synthetic(t, seed, 400_000))
	}
	share := func(share float64, session string) (fitted, dropped float64) {
		var kept, left, all int
		for _, c := range list {
			out := fitToShare(t, c, share, session)
			if out == nil {
				t.Logf("%s: not fitted to %.2f", c.name, share)
				continue
			}
			k, n := countSurviving(t, c, out, "fitting")
			d, _ := countSurviving(t, c, probetest.DropOldest(c.raw(len(c.Messages)), len(out)), "")
			kept, all, left = kept+k, all+n, left+d
		}
		if all < 500 {
			t.Errorf("only %d probes", all)
		}
		return float64(kept) / float64(all), float64(left) / float64(all)
	}
	for _, size := range []float64{0.5, 0.25} {
		fitted, dropped := share(size, "")
		t.Logf("%.2f of the size: %.3f survive, %.3f when the oldest are dropped", size, fitted, dropped)
		if fitted < 0.95 || fitted < dropped+0.2 {
			t.Errorf("%.3f survive at %.2f of the size, %.3f when the oldest are dropped", fitted, size, dropped)
		}
	}
	fitted, dropped := share(0.5, "s")
	t.Logf("in a session: %.3f survive, %.3f when the oldest are dropped", fitted, dropped)
	if fitted < 0.95 || fitted < dropped+0.2 {
		t.Errorf("%.3f survive in a session, %.3f when the oldest are dropped", fitted, dropped)
	}
}
