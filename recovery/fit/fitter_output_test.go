package fit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// bodyWithLimit returns a request with an output limit and a history of about tokens.
func bodyWithLimit(t *testing.T, field string, limit, tokens int) *transcript.Body {
	t.Helper()
	s := newScript()
	for n := 0; n < tokens; n += 500 {
		s.call("bash", fmt.Sprintf(`{"command":"make part%d"}`, n), strings.Repeat(fmt.Sprintf("part %d is built and is fine\n", n), 45))
	}
	raw := strings.Replace(string(s.body(t).Raw()), `{"model"`, fmt.Sprintf(`{"%s":%d,"model"`, field, limit), 1)
	return recoverytest.Parse(t, raw, transcript.Chat)
}

// serverRefusal returns the refusal of a server with this window, nil if it accepts b. stated
// means that it states input and output separately.
func serverRefusal(f *Fitter, b *transcript.Body, window int, stated bool) *recovery.Failure {
	prompt := f.parts.Meter.Measure(b, "gpt-4o").Total * 108 / 100
	_, limit, _ := b.OutputLimit()
	if prompt+limit <= window {
		return nil
	}
	fail := overflow(window, 0)
	if stated {
		fail.Facts.InputTokens, fail.Facts.MaxOutputTokens = prompt, limit
	} else {
		fail.Facts.RequestedTokens = prompt + limit
	}
	return fail
}

// A large output limit is lowered if the input fits; the history stays.
func TestOutputLimitGivesWay(t *testing.T) {
	for _, c := range []struct {
		field                 string
		limit, tokens, window int
		edited                bool
	}{
		{"max_tokens", 32_000, 3_000, 33_000, false}, // as qwen-code sends it
		{"max_tokens", 8_192, 6_000, 12_600, false},  // as opencode does
		{"max_completion_tokens", 32_000, 20_000, 32_768, false},
		{"max_tokens", 200_000, 2_000, 16_000, false},
		{"max_tokens", 32_000, 40_000, 33_000, true},
		{"max_tokens", 8_192, 11_900, 12_600, true},
	} {
		for _, stated := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d/%d/%d/%v", c.limit, c.tokens, c.window, stated), func(t *testing.T) {
				f := newTestFitter(t, Defaults(), nil)
				b := bodyWithLimit(t, c.field, c.limit, c.tokens)
				x := exchange(b, "s", nil)
				fail := serverRefusal(f, b, c.window, stated)
				if fail == nil {
					t.Fatal("it fits")
				}
				out := f.Fit(context.Background(), x, &x.Candidates[0], fail)
				if out == nil {
					t.Fatal("it is not fitted")
				}
				if fail := serverRefusal(f, out.Body, c.window, true); fail != nil {
					t.Fatalf("it is refused again: %+v", fail.Facts)
				}
				field, limit, _ := out.Body.OutputLimit()
				if field != c.field || limit > c.limit || limit < minOutput {
					t.Errorf("the limit is %s %d", field, limit)
				}
				if edited := out.Steps > 0; edited != c.edited {
					t.Errorf("%d messages are edited, %v", out.Steps, out.Tiers)
				}
				if !c.edited && (string(messagesOf(b)) != string(messagesOf(out.Body)) || limit < (c.window-c.tokens*3/2)/2) {
					t.Errorf("the history changed, or %d is too small a limit", limit)
				}
				x.Fitted = out
				f.Commit(context.Background(), x)

				again := exchange(b, "s", nil) // the next request is lowered before it is sent
				if !f.MayNeedFitting(again) {
					t.Fatal("the next request is not looked at")
				}
				next := f.Prepared(context.Background(), again)
				if next == nil || !next.Sticky || serverRefusal(f, next.Body, c.window, true) != nil {
					t.Fatalf("the next request goes as it is: %+v", next)
				}
				if string(messagesOf(next.Body)) != string(messagesOf(out.Body)) {
					t.Error("the next request is another")
				}
			})
		}
	}
}

func messagesOf(b *transcript.Body) []byte {
	list := b.Messages()
	return b.Raw()[list[0].Start:list[len(list)-1].End]
}

// The output limit is lowered below a quarter of the window if the history cannot be cut enough.
func TestOutputLimitToTheLeast(t *testing.T) {
	f := newTestFitter(t, Defaults(), nil)
	s := newScript()
	s.raw(`{"role":"system","content":` + string(transcript.String(strings.Repeat("rules of the house ", 1600))) + `}`)
	s.call("bash", `{"command":"make"}`, "fine")
	raw := strings.Replace(string(s.body(t).Raw()), `{"model"`, `{"max_tokens":4000,"model"`, 1)
	b := recoverytest.Parse(t, raw, transcript.Chat)
	window := f.parts.Meter.Measure(b, "gpt-4o").Total*108/100 + 1500
	x := exchange(b, "", nil)
	out := f.Fit(context.Background(), x, &x.Candidates[0], serverRefusal(f, b, window, true))
	if out == nil || serverRefusal(f, out.Body, window, true) != nil {
		t.Fatalf("it is not fitted: %+v", out)
	}
}

// A configured window is used before the first refusal only if the estimate is far above it.
func TestConfiguredWindow(t *testing.T) {
	body := bodyWithLimit(t, "n", 1, 30_000)
	total := newMeter().Measure(body, "gpt-4o").Total
	for _, c := range []struct {
		share  float64
		fitted bool
	}{{3, true}, {1.35, true}, {1.25, false}, {1.05, false}, {0.7, false}} {
		for _, session := range []string{"", "s"} {
			f := newTestFitter(t, Defaults(), newFakeStore())
			x := exchange(body, session, nil)
			window := int(float64(total) / c.share)
			x.Candidates[0].Window = window
			got := f.MayNeedFitting(x)
			if got {
				x.Fitted = f.Prepared(context.Background(), x)
				got = x.Fitted != nil
			}
			if got != c.fitted {
				t.Errorf("%.2f of the window: fitted %v", c.share, got)
			}
			if !got {
				continue
			}
			if n := f.parts.Meter.Measure(x.Fitted.Body, "gpt-4o").Total; n > window*95/100 {
				t.Errorf("%d tokens are left", n)
			}
			if f.memory.local("s") != nil {
				t.Error("it is remembered although the upstream has not answered")
			}
			f.Commit(context.Background(), x)
			if kept := f.memory.local("s") != nil; kept != (session != "") {
				t.Errorf("session %q: remembered %v", session, kept)
			}
			if f.Prepared(context.Background(), exchange(body, "other", nil)) != nil {
				t.Error("it is fitted although no window is configured")
			}
		}
	}
}
