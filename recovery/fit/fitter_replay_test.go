package fit_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/memory"
)

// commonMessages returns how many messages two requests have in common from the beginning.
func commonMessages(a, b *transcript.Body) int {
	x, y := a.Messages(), b.Messages()
	n := 0
	for n < len(x) && n < len(y) && bytes.Equal(x[n].Raw(), y[n].Raw()) {
		n++
	}
	return n
}

// replay sends a session request by request to one provider, through one fitter per
// replica in turn.
func replay(t *testing.T, c *conversation, window int, every int, replicas int, silent bool) (r *replayer) {
	t.Helper()
	st := memory.New(memory.Config{})
	t.Cleanup(func() { _ = st.Close() })
	windows := fit.NewWindows()
	var fitters []*fit.Fitter
	for range replicas {
		f := fit.New(fit.Defaults(), fit.Parts{Meter: count.NewMeter(), Store: fit.Replica(t, st), Windows: windows})
		t.Cleanup(func() { _ = f.Close(context.Background()) })
		fitters = append(fitters, f)
	}
	r = &replayer{provider: newProvider(window), summarizer: newFakeSummarizer(), session: "s", ledger: c.ledger}
	r.provider.silent = silent
	turns := c.turns()
	for i, n := range turns {
		if i%every == 0 || i == len(turns)-1 {
			r.fitter = fitters[len(r.sent)%replicas]
			r.send(t, c.body(t, n))
		}
	}
	return r
}

// Sessions are refused once on average even if refusals do not state the window: it is guessed
// between the refused prompt and the last one that was answered.
func TestSilent(t *testing.T) {
	sessions, refused := 0, 0
	windows := []int{48_000, 32_000, 24_000, 16_000, 12_000}
	if testing.Short() {
		windows = []int{32_000, 16_000}
	}
	for _, c := range recorded(t) {
		for _, window := range windows {
			last, _ := newProvider(0).ask(c.body(t, len(c.Messages)))
			first, _ := newProvider(0).ask(c.body(t, c.turns()[0]))
			if last.Input <= window || last.Input > 4*window || first.Input > window/2 || fit.RaceEnabled {
				continue
			}
			r := replay(t, c, window, max(1, len(c.turns())/12), 1, true)
			t.Logf("%s/%d: %d requests, %d refused, %d failed", c.name, window, len(r.sent), r.provider.overflow, r.failed)
			sessions, refused = sessions+1, refused+r.provider.overflow
			if r.failed > 0 {
				t.Errorf("%s/%d: %d failed", c.name, window, r.failed)
			}
		}
	}
	if refused > sessions {
		t.Errorf("%d sessions were refused %d times", sessions, refused)
	}
}

// A session overflows at most once, and edits stay byte for byte the same on all later
// requests, on any replica.
func TestSticky(t *testing.T) {
	list := recorded(t)
	list = append(list, synthetic(t, 7, 500_000))
	for _, c := range list {
		list = append(list, c.converted())
	}
	for _, c := range list {
		whole := newProvider(0)
		usage, _ := whole.ask(c.body(t, len(c.Messages)))
		for _, window := range []int{64_000, 32_000, 16_000, 8_000} {
			if first, _ := newProvider(0).ask(c.body(t, c.turns()[0])); usage.Input <= window || first.Input > window/2 {
				continue
			}
			if fit.RaceEnabled && usage.Input > 40_000 {
				continue
			}
			every := max(1, len(c.turns())/30)
			if usage.Input > 2*window && window < 64_000 {
				continue // with requests skipped, the turns are too large for a small window
			}
			for _, replicas := range []int{1, 2} {
				if c.ledger != nil && replicas > 1 {
					continue
				}
				if testing.Short() && usage.Input > 100_000 && replicas == 1 {
					continue // what one replica forgets, two do not share
				}
				t.Run(fmt.Sprintf("%s/%d/%d", c.name, window, replicas), func(t *testing.T) {
					t.Parallel()
					r := replay(t, c, window, every, replicas, false)
					if r.failed > 0 {
						t.Errorf("%d requests failed", r.failed)
					}
					if r.provider.overflow > 1 {
						t.Errorf("%d overflows", r.provider.overflow)
					}
					if len(r.edits) == 0 {
						t.Error("nothing was edited")
					}
					edited := map[int]bool{}
					for _, i := range r.edits {
						edited[i] = true
					}
					for i := 1; i < len(r.sent); i++ {
						if had := len(r.sent[i-1].Messages()); !edited[i] && commonMessages(r.sent[i-1], r.sent[i]) < had {
							t.Errorf("request %d repeats %d of the %d messages before", i, commonMessages(r.sent[i-1], r.sent[i]), had)
						}
					}
					t.Logf("%d requests, %d overflows, edits at %v, %d summaries", len(r.sent), r.provider.overflow, r.edits, r.summarizer.calls)
				})
			}
		}
	}
}

// A session costs at most as much as if the oldest turns were dropped to 60 % whenever the
// window is full. Summaries count as uncached input.
func TestCost(t *testing.T) {
	if testing.Short() || fit.RaceEnabled {
		t.Skip("sends some thousand large requests")
	}
	var compared atomic.Int32
	t.Run("bills", func(t *testing.T) {
		for _, c := range recorded(t) {
			for _, window := range []int{128_000, 64_000, 32_000, 16_000} {
				if len(c.raw(len(c.Messages))) < 3*window {
					continue // it fits
				}
				t.Run(fmt.Sprintf("%s/%d", c.name, window), func(t *testing.T) {
					t.Parallel()
					dropped, breaks := costOfDropping(t, c, window)
					if breaks == 0 {
						return
					}
					compared.Add(1)
					r := replay(t, c, window, 1, 1, false)
					cost := (r.provider.billed + float64(r.summarizer.spent)) / dropped
					t.Logf("bill %.3f of that of dropping, %.3f without summaries; %d fittings, %d by dropping; %d overflows, %d summaries",
						cost, r.provider.billed/dropped, len(r.edits), breaks, r.provider.overflow, r.summarizer.calls)
					if cost > 1.01 || r.failed > 0 || r.provider.overflow > 1 {
						t.Errorf("bill %.3f of that of dropping, %d failed, %d overflows", cost, r.failed, r.provider.overflow)
					}
				})
			}
		}
	})
	if n := compared.Load(); n < 10 {
		t.Errorf("only %d bills", n)
	}
}

// costOfDropping returns what a session costs if the oldest turns are dropped to 60 % of the
// budget whenever it is full, and how often that happens.
func costOfDropping(t *testing.T, c *conversation, window int) (billed float64, breaks int) {
	p := newProvider(0)
	first := 0
	for c.roles[first] != "assistant" {
		first++
	}
	from := first
	body := func(n int) *transcript.Body {
		cut := &conversation{Tools: c.Tools}
		cut.Messages = append(append(cut.Messages, c.Messages[:first]...), c.Messages[from:n]...)
		return cut.body(t, len(cut.Messages))
	}
	for _, n := range c.turns() {
		b := body(n)
		tokens := func() int { return int(p.factor * float64(p.meter.Measure(b, simModel).Total)) }
		if tokens()+4096 > window*95/100 {
			for breaks++; tokens() > (window-4096)*6/10 && from < n-2; b = body(n) {
				for from++; from < n-1 && c.roles[from] == "tool"; from++ {
				}
			}
		}
		p.ask(b)
	}
	return p.billed, breaks
}
