package fit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// overflowing fits a request after a refusal that states limit and size.
func overflowing(t *testing.T, f *fit.Fitter, m *fit.Meter, b *transcript.Body, limit int) *recovery.Fitted {
	t.Helper()
	x := &recovery.Exchange{Body: b, Model: simModel, Mode: recovery.ModeAct, Completer: newTeller(),
		Candidates: []recovery.Choice{{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: "u", Model: simModel}}}}}
	total := m.Measure(b, simModel).Total
	return f.Fit(context.Background(), x, &x.Candidates[0], &recovery.Failure{Diagnosis: recovery.Diagnosis{
		Spec: &recovery.Spec{Class: recovery.ContextLengthExceeded}, Facts: recovery.Facts{LimitTokens: limit, InputTokens: max(total, limit)}}})
}

// Every recorded session fits every window that its protected part fits with
// room to spare, unless it is many times as large.
func TestWindows(t *testing.T) {
	m := fit.NewMeter(fit.Offline(), fit.MeterConfig{})
	tried := 0
	for _, c := range recorded(t) {
		b := c.body(t, len(c.Messages))
		counts := m.Measure(b, simModel)
		total := counts.Total
		for _, window := range []int{128_000, 64_000, 32_000, 16_000, 8_000} {
			if total+fit.Reserve(b, window) <= window {
				continue
			}
			tried++
			t.Run(fmt.Sprintf("%s/%d", c.name, window), func(t *testing.T) {
				f := fit.New(fit.Defaults(), fit.Parts{Meter: m})
				defer f.Close(context.Background())
				out := overflowing(t, f, m, b, window)
				budget := window - fit.Reserve(b, window)
				if out == nil {
					if must := protectedTokens(c, counts, budget); must < budget*3/4 && total < 15*budget {
						t.Fatalf("%d tokens are not fitted, although %d of them are protected", total, must)
					}
					return
				}
				verify(t, b, out.Body)
				unchanged(t, c, counts, budget, out.Body)
				after := m.Measure(out.Body, simModel).Total
				if after >= budget || after >= total {
					t.Fatalf("%d tokens are left of %d", after, total)
				}
				if same, _, ok := fit.Compress(fit.Defaults(), out.Body, m, simModel, window, fit.Reserve(b, window)); !ok || same != out.Body {
					t.Error("what was fitted is fitted again")
				}
				one := overflowing(t, f, m, b, window)
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

// protectedTokens is what must stay, judged simply: the beginning, the user's
// words up to a quarter of the budget, the last answer and what follows it.
func protectedTokens(c *conversation, counts fit.Counts, budget int) int {
	n, users, last := counts.Fixed, 0, len(c.roles)
	for last > 0 && c.roles[last-1] != "assistant" {
		last--
	}
	first := slices.Index(c.roles, "assistant")
	for i, tokens := range counts.Messages {
		switch {
		case i < first || i >= last-1:
			n += tokens
		case c.roles[i] == "user" && len(c.Tools) > 4:
			users += tokens
		}
	}
	return n + min(users, budget/4)
}

// unchanged checks that protected messages are there byte for byte: the
// instructions, the task, the user's words where they are within their share,
// and the last step but for results that alone take a quarter of the budget.
func unchanged(t *testing.T, c *conversation, counts fit.Counts, budget int, after *transcript.Body) {
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
	last := len(c.roles) - 1
	for c.roles[last] != "assistant" {
		last--
	}
	for i, r := range c.roles {
		keep := r == "system" || r == "user" && len(c.Tools) > 4 && users < budget/4
		keep = keep || i >= last && counts.Messages[i] < budget/40
		if keep && !there[string(c.Messages[i])] {
			t.Errorf("message %d is not there as it was: %.200s", i, c.Messages[i])
		}
	}
}
