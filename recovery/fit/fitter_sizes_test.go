package fit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// fitOverflow fits a request after a refusal that states limit and size.
func fitOverflow(t *testing.T, f *fit.Fitter, m *count.Meter, b *transcript.Body, limit int) *recovery.Fitted {
	t.Helper()
	x := &recovery.Exchange{Request: recovery.Request{Body: b, Model: simModel, Mode: recovery.ModeAct}, Completer: newFakeSummarizer(),
		Candidates: []recovery.Choice{{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: "u", Model: simModel}}}}}
	total := m.Measure(b, simModel).Total
	return f.Fit(context.Background(), x, &x.Candidates[0], &recovery.Failure{Diagnosis: recovery.Diagnosis{
		Spec: &recovery.Spec{Class: recovery.ContextLengthExceeded}, Facts: recovery.Facts{LimitTokens: limit, InputTokens: max(total, limit)}}})
}

// Every session is fitted to every window that its instructions, task, tools and last turn
// fit, with and without a summariser.
func TestWindows(t *testing.T) {
	m := count.NewMeter()
	tried := 0
	list := recorded(t)
	for seed := range uint64(2) {
		list = append(list, synthetic(t, 10+seed, 600_000))
	}
	for _, c := range list {
		b := c.body(t, len(c.Messages))
		counts := m.Measure(b, simModel)
		total := counts.Total
		for _, window := range []int{128_000, 64_000, 32_000, 16_000, 8_000} {
			if total+fit.OutputReserve(b, window) <= window {
				continue
			}
			if testing.Short() && total > 100_000 && window != 64_000 && window != 8_000 {
				continue
			}
			tried++
			t.Run(fmt.Sprintf("%s/%d", c.name, window), func(t *testing.T) {
				t.Parallel()
				b := c.body(t, len(c.Messages))
				f := fit.New(fit.Defaults(), fit.Parts{Meter: m, Windows: fit.NewWindows()})
				defer f.Close(context.Background())
				out := fitOverflow(t, f, m, b, window)
				budget := window - fit.OutputReserve(b, window)
				alone, r, ok := fit.Compress(fit.Defaults(), b, m, simModel, window, fit.OutputReserve(b, window))
				if must := lastingTokens(c, counts); (out == nil || !ok) && must < budget*9/10 {
					t.Fatalf("%d tokens are not fitted to %d (offline: %v), although only %d of them have to stay", total, budget, ok, must)
				}
				if ok {
					verify(t, b, alone)
					checkLasting(t, c, counts, budget, alone)
					if r.TokensAfter >= budget || slices.Contains(r.Tiers, fit.TierDigest) && r.TokensAfter > budget*85/100 {
						t.Errorf("offline %d of %d tokens are left: %v", r.TokensAfter, budget, r.Tiers)
					}
					t.Logf("offline %d -> %d tokens of %d, %v, %d steps", total, r.TokensAfter, budget, r.Tiers, r.Steps)
				}
				if out == nil {
					return
				}
				verify(t, b, out.Body)
				checkProtected(t, c, counts, budget, out.Body)
				after := m.Measure(out.Body, simModel).Total
				if after >= budget || after >= total {
					t.Fatalf("%d tokens are left of %d", after, total)
				}
				if same, _, ok := fit.Compress(fit.Defaults(), out.Body, m, simModel, window, fit.OutputReserve(b, window)); !ok || same != out.Body {
					t.Error("what was fitted is fitted again")
				}
				one := fitOverflow(t, f, m, b, window)
				if string(one.Body.Raw()) != string(out.Body.Raw()) {
					t.Error("a second fitting makes other bytes")
				}
				t.Logf("%d -> %d tokens of %d, %v, %d steps", total, after, budget, out.Tiers, out.Steps)
			})
		}
	}
	if tried < 20 {
		t.Errorf("only %d fittings were tested", tried)
	}
}

// lastingTokens returns the tokens that must stay, by a simple rule: everything before the first
// answer, later system messages, and the last answer with what follows it.
func lastingTokens(c *conversation, counts count.Counts) int {
	n, first, last := counts.Fixed, slices.Index(c.roles, "assistant"), lastAnswer(c)
	for i, tokens := range counts.Messages {
		if i < first || i >= last || c.roles[i] == "system" {
			n += tokens
		}
	}
	return n
}

func lastAnswer(c *conversation) int {
	last := len(c.roles) - 1
	for c.roles[last] != "assistant" {
		last--
	}
	return last
}

// checkLasting checks that messages that must stay are unchanged, except large ones of the
// last turn.
func checkLasting(t *testing.T, c *conversation, counts count.Counts, budget int, after *transcript.Body) {
	t.Helper()
	there := map[string]bool{}
	for _, m := range after.Messages() {
		there[string(m.Raw())] = true
	}
	first, last := slices.Index(c.roles, "assistant"), lastAnswer(c)
	for i := range c.roles {
		must := i < first || c.roles[i] == "system" || i >= last && (c.roles[i] != "tool" && counts.Messages[i] < budget/20 || counts.Messages[i] < budget/40)
		if must && !there[string(c.Messages[i])] {
			t.Errorf("message %d of %d is not there as it was: %.200s", i, len(c.roles), c.Messages[i])
		}
	}
}

// checkProtected checks that protected messages are unchanged: system messages, the user's if
// they are within their share, and those of the last step if they are small.
func checkProtected(t *testing.T, c *conversation, counts count.Counts, budget int, after *transcript.Body) {
	t.Helper()
	there := map[string]bool{}
	for _, m := range after.Messages() {
		there[string(m.Raw())] = true
	}
	users := 0
	for i, r := range c.roles {
		if r == "user" {
			users += counts.Messages[i]
		}
	}
	last := lastAnswer(c)
	for i, r := range c.roles {
		keep := r == "system" || r == "user" && len(c.Tools) > 4 && users < budget/4
		keep = keep || i >= last && counts.Messages[i] < budget/40
		if keep && !there[string(c.Messages[i])] {
			t.Errorf("message %d is not there as it was: %.200s", i, c.Messages[i])
		}
	}
}
