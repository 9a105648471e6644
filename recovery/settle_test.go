package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// seen is what strategies are shown of a candidate after a failure.
func seen(c *recovery.Choice) string {
	var out []string
	for name, is := range map[string]bool{"excluded": c.Excluded, "small": c.Small, "silent": c.Silent, "resumed": c.Resumed} {
		if is {
			out = append(out, name)
		}
	}
	if len(out) > 1 {
		return fmt.Sprint(len(out), " marks")
	}
	return strings.Join(out, "")
}

// TestSettled is what one failure says of each candidate: of the one that failed, and of
// those that are the same to the failure.
func TestSettled(t *testing.T) {
	at := func(phase recovery.Phase, err error) step {
		return func(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			return nil, fail(a, recovery.Evidence{Phase: phase, Err: err})
		}
	}
	gone := refuse(404, `{"error":{"message":"The model m does not exist","code":"model_not_found"}}`)
	long := overflow // of 8192 tokens
	for _, c := range []struct {
		name string
		a    step
		set  func(g *rig, list []recovery.Choice)
		want string // of candidates a to d
	}{
		{name: "a key that is refused", a: refuse(401, envelope("Incorrect API key provided")), want: "excluded,,,"},
		{name: "no permission", a: refuse(403, envelope("You are not allowed to sample from this model")), want: "excluded,,,"},
		{name: "no credit", a: refuse(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), want: "excluded,,,"},
		{name: "an outage", a: busy, want: ",,,"},
		{name: "no such model: with other keys neither, elsewhere perhaps", a: gone, set: func(_ *rig, list []recovery.Choice) {
			list[1].Target, list[2].Target = list[0].Target, list[0].Target
			list[1].Key, list[2].Model = "other", "n"
		}, want: "excluded,excluded,,"},
		{name: "no such model, which the same upstream had", a: gone, set: func(_ *rig, list []recovery.Choice) { list[1].Excluded = true },
			want: "excluded,excluded,,"},
		{name: "too long for windows that are no larger", a: long, set: func(_ *rig, list []recovery.Choice) {
			list[1].Window, list[2].Window, list[3].Window = 8192, 8193, 1
		}, want: "small,small,,small"},
		{name: "too long for what others found out", a: long, set: func(g *rig, list []recovery.Choice) {
			g.facts.LearnWindow(list[1].Target, 8192, "r1")
			g.facts.LearnWindow(list[2].Target, 9000, "r1")
		}, want: "small,small,,"},
		{name: "too long, and the configuration knows better", a: long, set: func(_ *rig, list []recovery.Choice) {
			list[0].Window, list[1].Window, list[2].Window = 16_000, 16_000, 16_001
		}, want: "small,small,,"},
		{name: "too long, and too long before", a: long, set: func(_ *rig, list []recovery.Choice) { list[1].Small, list[1].Window = true, 9000 },
			want: "small,small,,"},
		{name: "no connection in time", a: at(recovery.PhaseConnect, context.DeadlineExceeded), want: "silent,,,"},
		{name: "no answer in time", a: at(recovery.PhaseHeaders, context.DeadlineExceeded), want: "silent,,,"},
		{name: "its own time-out is an answer", a: refuse(504, envelope("upstream timed out")), want: ",,,"},
		{name: "silent before", a: busy, set: func(_ *rig, list []recovery.Choice) { list[0].Silent = true }, want: "silent,,,"},
		{name: "silent before, and a time-out of its own", a: refuse(504, envelope("upstream timed out")),
			set: func(_ *rig, list []recovery.Choice) { list[0].Silent = true }, want: "silent,,,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {c.a}})
				g.Strategies = nil
				x := exchange(t, plainBody, "abcd")
				if c.set != nil {
					c.set(g, x.Candidates)
				}
				f, err := g.run(t, t.Context(), x)
				if f == nil || err != nil {
					t.Fatal(f, err)
				}
				var got []string
				for i := range x.Candidates {
					got = append(got, seen(&x.Candidates[i]))
				}
				if strings.Join(got, ",") != c.want || f.Attempt != 1 {
					t.Errorf("%s after %s, attempt %d; want %s", got, f.Class(), f.Attempt, c.want)
				}
			})
		})
	}
}

// After an empty answer, and one that is reasoning only, the next is taken as it is.
func TestEmptyOnce(t *testing.T) {
	unsaid := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		n, f := flawed("")(g, ctx, a)
		f.Flaw.Kind = recovery.FlawUnsaid
		return n, f
	}
	for name, c := range map[string]struct {
		first step
		want  bool
	}{"empty": {empty, true}, "reasoning only": {unsaid, true}, "a flaw": {flawed(""), false}, "an outage": {busy, false}} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {c.first, ok}})
			f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
			answered(t, f, err)
			if g.attempts[0].AcceptEmpty || g.attempts[1].AcceptEmpty != c.want {
				t.Errorf("after %s an empty answer is taken: %t", name, g.attempts[1].AcceptEmpty)
			}
		})
	}
}

// TestContinuations is what a failed continuation says of its target, and what it costs.
func TestContinuations(t *testing.T) {
	const text = "This is the beginning of an answer"
	diverged := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		n, f := behind(text, reset)(g, ctx, a)
		f.Diverged = true
		return n, f
	}
	unreachable := func(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		f := fail(a, recovery.Evidence{Phase: recovery.PhaseConnect, Err: errors.New("no route to host")})
		f.Released, f.Sent = recovery.ReleasedText, text
		return nil, f
	}
	for _, c := range []struct {
		name    string
		second  step
		extra   int
		useless bool
	}{
		{"no connection: free", unreachable, 0, false},
		{"an error status: free", behind(text, busy), 0, false},
		{"broken on the way: paid, each time", behind(text, reset), 4, false},
		{"another answer: paid, and not that way again", diverged, 1, true},
		{"refused: free, and not that way again", behind(text, refuse(400, envelope("Invalid value"))), 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {cut(recovery.ReleasedText, text), c.second}})
				g.Config.Attempts, g.Config.Continue = 2, []recovery.Way{recovery.WayAsk}
				x := exchange(t, plainBody, "a")
				f, err := g.run(t, t.Context(), x)
				if err != nil || f == nil || f.Class() != recovery.StreamCut {
					t.Fatal(f, err)
				}
				if got := &x.Candidates[0]; !got.Resumed || (len(got.FailedWays) == 1) != c.useless || x.Extra() != c.extra {
					t.Errorf("resumed %t, of no use %v, extra %d", got.Resumed, got.FailedWays, x.Extra())
				}
			})
		})
	}
}

// TestTheError is which of several failures the client gets.
func TestTheError(t *testing.T) {
	const text = "This is the beginning of an answer"
	said := func(status int, message string) step { return refuse(status, envelope(message)) }
	seed := refuse(400, `{"error":{"message":"Unsupported parameter: 'seed'","param":"seed","code":"unsupported_parameter"}}`)
	body := strings.Replace(agentBody, `{"model"`, `{"seed":1,"model"`, 1)
	for _, c := range []struct {
		name     string
		a, b     []step
		to       string
		body     string
		attempts int
		want     string
		released recovery.Released
	}{
		{name: "the last one", a: []step{said(500, "The server had an error: first"), said(500, "The server had an error: second")}, to: "a", attempts: 2,
			want: "second"},
		{name: "what was said, not how the next connection broke", a: []step{said(500, "The server had an error: first"), reset}, to: "a", attempts: 2,
			want: "first"},
		{name: "what was said of the client's own bytes, not of ours", a: []step{seed, said(400, "Invalid value: ours")}, to: "a", body: body, attempts: 6,
			want: "seed"},
		{name: "what was said of the client's own bytes last", a: []step{said(500, "The server had an error: first"), seed, said(400, "Invalid value: ours")},
			to: "a", body: body, attempts: 6, want: "seed"},
		{name: "an outage behind an edit is none of the edit's", a: []step{seed, said(500, "The server had an error: second")}, to: "a", body: body,
			attempts: 2, want: "second"},
		{name: "a refusal, not that of its explanation", a: []step{said(400, "Invalid value: first"), said(400, "Invalid value: explained")}, to: "a",
			body: agentBody, attempts: 6, want: "first"},
		{name: "a refusal, not the outage of its explanation", a: []step{said(400, "Invalid value: first"), said(500, "The server had an error: explained")},
			to: "a", body: agentBody, attempts: 3, want: "first"},
		{name: "how the answer broke, not its continuation", a: []step{cut(recovery.ReleasedText, text), behind(text, said(400, "Invalid value: next"))},
			to: "a", attempts: 6, want: "unexpected EOF", released: recovery.ReleasedText},
		{name: "how the answer broke, and how far the client is", a: []step{cut(recovery.ReleasedText, text), cut(recovery.ReleasedCall, text)}, to: "a",
			attempts: 6, want: "unexpected EOF", released: recovery.ReleasedCall},
		{name: "how the paused answer broke, not its continuation", a: []step{pausesThenBreaks(text), behind(text, said(400, "Invalid value: here"))},
			b: []step{behind(text, said(400, "Invalid value: next"))}, to: "ab", attempts: 6, want: "unexpected EOF", released: recovery.ReleasedText},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				g.Config.Attempts, g.Config.Patience = c.attempts, 0
				if c.body == "" {
					c.body = plainBody
				}
				x := exchange(t, c.body, c.to)
				f, err := g.run(t, t.Context(), x)
				if err != nil || f == nil {
					t.Fatal(f, err)
				}
				got := string(f.Response.Body)
				if f.Err != nil {
					got += f.Err.Error()
				}
				if !strings.Contains(got, c.want) || f.Released != c.released {
					t.Errorf("got %s, released %d; want %s, %d", got, f.Released, c.want, c.released)
				}
				if n := g.observer.Count(recovery.EventRecoveryFailed); n != 1 {
					t.Errorf("%d events tell of it", n)
				}
			})
		})
	}
}

// pausesThenBreaks pauses for half a minute, and breaks.
func pausesThenBreaks(text string) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		return g.answer(ctx, a, &answer{released: recovery.ReleasedText, sent: text, pause: 30 * time.Second, breaks: true})
	}
}
