package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

var (
	busy     = refuse(500, envelope("The server had an error"))
	limited  = refuse(429, envelope("Rate limit reached"))
	overflow = refuse(400, envelope("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."))
)

// empty is a success without any content.
func empty(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	return nil, fail(a, recovery.Evidence{Phase: recovery.PhaseBody, Status: 200})
}

// answered fails unless x was answered.
func answered(t *testing.T, f *recovery.Failure, err error) {
	t.Helper()
	if f != nil || err != nil {
		t.Errorf("got %v, %v instead of an answer", f, err)
	}
}

// TestRecovers is one fault after the other: who is asked, and what the header says.
func TestRecovers(t *testing.T) {
	long := refuse(429, envelope("Rate limit reached"), "Retry-After", "30")
	short := refuse(429, envelope("Rate limit reached"), "Retry-After", "2")
	unavailable := func(status int, header ...string) step {
		return refuse(status, `{"error":{"message":"The server is temporarily unavailable","type":"server_error"}}`, header...)
	}
	cases := []struct {
		name    string
		a, b    []step
		to      string
		asked   string
		actions string
		class   recovery.Class // of the failure in the end
		least   time.Duration
		most    time.Duration
	}{
		{name: "healthy", a: []step{ok}, to: "ab", asked: "a"},
		{name: "resend", a: []step{busy, ok}, to: "a", asked: "aa", actions: "resend"},
		{name: "one resend, then move", a: []step{busy}, b: []step{ok}, to: "ab", asked: "aab", actions: "resend move", most: 3 * time.Second},
		{name: "the same 500", a: []step{busy}, to: "a", asked: "aaa", actions: "resend", class: recovery.ServerError},
		{name: "budget", a: []step{reset}, to: "a", asked: "aaaaaa", actions: "resend", class: recovery.ServerError},
		{name: "reset", a: []step{reset, ok}, to: "a", asked: "aa", actions: "resend"},
		{name: "short wait", a: []step{short, ok}, b: []step{ok}, to: "ab", asked: "aa", actions: "wait"},
		{name: "long wait, move at once", a: []step{long}, b: []step{ok}, to: "ab", asked: "ab", actions: "move", most: 2 * time.Second},
		{name: "long wait, nothing else", a: []step{long, ok}, to: "a", asked: "aa", actions: "wait", most: 35 * time.Second},
		{name: "one wait, then move", a: []step{limited}, b: []step{ok}, to: "ab", asked: "aab", actions: "wait move"},
		{name: "unavailable, short wait", a: []step{unavailable(503, "Retry-After", "3"), ok}, b: []step{ok}, to: "ab", asked: "aa", actions: "wait",
			least: 3 * time.Second},
		{name: "unavailable, one wait, then move", a: []step{unavailable(503, "Retry-After", "3")}, b: []step{ok}, to: "ab", asked: "aab", actions: "wait move",
			most: 5 * time.Second},
		{name: "unavailable, no wait after a resend", a: []step{busy, unavailable(503, "Retry-After", "3")}, b: []step{ok}, to: "ab", asked: "aab",
			actions: "resend move", most: 3 * time.Second},
		{name: "unavailable, long wait, move at once", a: []step{unavailable(503, "Retry-After", "8")}, b: []step{ok}, to: "ab", asked: "ab", actions: "move",
			most: 2 * time.Second},
		{name: "unavailable, long wait, nothing else", a: []step{unavailable(529, "Retry-After", "8"), unavailable(503, "retry-after-ms", "9500"), ok}, to: "a",
			asked: "aaa", actions: "wait", least: 17 * time.Second, most: 22 * time.Second},
		{name: "unavailable for too long, nothing else", a: []step{unavailable(500, "Retry-After", "61"), ok}, to: "a", asked: "a", class: recovery.ServerError},
		{name: "unavailable now, nothing else", a: []step{unavailable(500, "Retry-After", "0"), ok}, to: "a", asked: "aa", actions: "resend", most: 3 * time.Second},
		{name: "all ask to wait", a: []step{unavailable(503, "Retry-After", "20"), ok}, b: []step{unavailable(503, "Retry-After", "8"), ok}, to: "ab",
			asked: "abb", actions: "move wait", least: 8 * time.Second, most: 12 * time.Second},
		{name: "all ask to wait, the first is ready first", a: []step{unavailable(503, "Retry-After", "8"), ok},
			b: []step{unavailable(503, "Retry-After", "20"), ok}, to: "ab", asked: "aba", actions: "move wait", least: 8 * time.Second, most: 12 * time.Second},
		{name: "quota", a: []step{refuse(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`)}, b: []step{ok}, to: "ab",
			asked: "ab", actions: "move", most: 2 * time.Second},
		{name: "auth alone", a: []step{refuse(401, envelope("Incorrect API key provided"))}, to: "a", asked: "a", class: recovery.Auth},
		{name: "overflow alone", a: []step{overflow}, to: "a", asked: "a", class: recovery.ContextLengthExceeded},
		{name: "overflow, unknown window", a: []step{overflow}, b: []step{ok}, to: "ab", asked: "ab", actions: "larger_window"},
		{name: "overflow, unknown window, once", a: []step{overflow}, b: []step{overflow, ok}, to: "ab", asked: "ab", actions: "larger_window",
			class: recovery.ContextLengthExceeded},
		{name: "empty", a: []step{empty}, b: []step{ok}, to: "ab", asked: "ab", actions: "move"},
		{name: "empty alone", a: []step{empty, ok}, to: "a", asked: "aa", actions: "resend"},
		{name: "content policy", a: []step{refuse(400, `{"error":{"message":"Your request was rejected by our safety system","code":"content_policy_violation"}}`)}, b: []step{ok}, to: "ab", asked: "a", class: recovery.ContentPolicy},
		{name: "invalid", a: []step{refuse(400, envelope("Invalid value"))}, b: []step{ok}, to: "ab", asked: "a", class: recovery.InvalidRequest},
		{name: "cut after text", a: []step{cut(recovery.ReleasedText, "Hel"), ok}, to: "a", asked: "aa", actions: "resume"},
		{name: "cut before text", a: []step{cut(recovery.ReleasedNothing, ""), ok}, to: "a", asked: "aa", actions: "resend"},
		{name: "cut after reasoning", a: []step{cut(recovery.ReleasedReasoning, ""), ok}, to: "a", asked: "aa", actions: "resend"},
		{name: "cut in a call", a: []step{cut(recovery.ReleasedCall, "x"), ok}, b: []step{ok}, to: "ab", asked: "a", class: recovery.StreamCut},
		{name: "cut for ever", a: []step{cut(recovery.ReleasedText, "Hel")}, to: "a", asked: "aaaaa", actions: "resume", class: recovery.StreamCut},
		{name: "cut twice, then not", a: []step{cut(recovery.ReleasedText, "Hel"), cut(recovery.ReleasedText, "Hel")}, b: []step{ok}, to: "ab", asked: "aab",
			actions: "resume"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				x := exchange(t, sampleless, c.to)
				f, err := g.run(t, t.Context(), x)
				if err != nil || (f == nil) != (c.class == "") || f != nil && f.Class() != c.class {
					t.Errorf("ended with %v, %v", f, err)
				}
				if got := g.asked(); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
				if got := strings.Join(x.Actions(), " "); got != c.actions {
					t.Errorf("did %q, want %q", got, c.actions)
				}
				if took := time.Since(x.Started) - time.Second; c.most > 0 && took > c.most || took < c.least {
					t.Errorf("took %v", took)
				}
				if n := g.observer.Count(recovery.EventRecoveryFailed); (n == 1) != (f != nil) {
					t.Errorf("%d events of failure", n)
				}
				if n := g.observer.Count(recovery.EventRecoverySuccess); (n == 1) != (f == nil && len(c.asked) > 1) {
					t.Errorf("%d events of success", n)
				}
				for i := range g.attempts {
					if !bytes.Equal(g.attempts[i].Body, x.Body.Raw()) {
						t.Errorf("attempt %d got other bytes", i)
					}
				}
			})
		})
	}
}

// TestRateLimitForEver: a limit without a hint is not run into.
func TestRateLimitForEver(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {limited}})
			f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
			if err != nil || f == nil || f.Class() != recovery.RateLimit || f.Response.Status != 429 {
				t.Fatalf("ended with %v, %v", f, err)
			}
			early := 0
			for _, a := range g.attempts {
				if a.at.Sub(g.attempts[0].at) <= 3*time.Second {
					early++
				}
			}
			if early > 4 || len(g.attempts) > 8 {
				t.Errorf("%d attempts in 3 s, %d in all", early, len(g.attempts))
			}
		})
	}
}

// TestRetryAfterAnew: each refusal's own hint counts, and none is undercut.
func TestRetryAfterAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var script []step
		hints := []int{1, 20, 3, 0}
		for _, s := range hints {
			script = append(script, refuse(429, envelope("Rate limit reached"), "Retry-After", fmt.Sprint(s)))
		}
		g := newRig(map[string][]step{"a": append(script, ok)})
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
		answered(t, f, err)
		for i, s := range hints {
			hint := time.Duration(s) * time.Second
			if got := g.attempts[i+1].at.Sub(g.attempts[i].at); got < max(hint, time.Second) || s > 0 && got > hint+hint/10+time.Second {
				t.Errorf("waited %v where %v was asked for", got, hint)
			}
		}
	})
}

func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, script := range [][]step{{hang}, {busy}, {limited}, {late(time.Minute, busy)}} {
			for _, patience := range []time.Duration{0, 3 * time.Second, 45 * time.Second} {
				g := newRig(map[string][]step{"a": script})
				g.Config.Attempts = 100
				x := exchange(t, plainBody, "a")
				x.Patience = patience
				f, err := g.run(t, t.Context(), x)
				limit := patience
				if limit == 0 {
					limit = g.Config.Deadline
				}
				if took := time.Since(x.Started) - time.Second; f == nil || err != nil || took > limit+time.Second {
					t.Errorf("%v, %v after %v, the limit is %v", f, err, took, limit)
				}
			}
		}
	})
}

func TestStall(t *testing.T) {
	for _, c := range []struct {
		name    string
		script  []step
		pause   time.Duration
		refused int
	}{
		{"taken over", []step{stall("Hel", time.Hour), ok}, 21 * time.Second, 0},
		{"goes on by itself", []step{stall("Hel", 25*time.Second), hang}, 25 * time.Second, 0},
		{"short", []step{stall("Hel", 10*time.Second), hang}, 10 * time.Second, 0},
		{"no help", []step{stall("Hel", 30*time.Second), refuse(400, envelope("Invalid value"))}, 30 * time.Second, 1},
		{"no capacity", []step{stall("Hel", 40*time.Second), refuse(429, envelope("Rate limit reached, try again in 9m"))}, 40 * time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.script})
				x := exchange(t, plainBody, "a")
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				if took := time.Since(x.Started) - time.Second; took < c.pause || took > c.pause+time.Second {
					t.Errorf("took %v", took)
				}
				if got := g.answers[0].refused; got != c.refused {
					t.Errorf("%d continuations were called refused, want %d", got, c.refused)
				}
			})
		})
	}
}

func TestOriginal(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"hello"}],"seed":1}`
	refusesEdit := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		if a.Edited {
			return refuse(400, envelope("Invalid value"))(g, ctx, a)
		}
		return ok(g, ctx, a)
	}
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {refusesEdit}})
		x := exchange(t, body, "a")
		g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Field: "seed", Drop: true}}, "r1")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if len(g.attempts) != 2 || bytes.Contains(g.attempts[0].Body, []byte("seed")) || string(g.attempts[1].Body) != body {
			t.Errorf("%d attempts, the last with %s", len(g.attempts), g.attempts[len(g.attempts)-1].Body)
		}
		if got := strings.Join(x.Actions(), " "); got != "learned original" {
			t.Errorf("did %q", got)
		}
		if got := g.facts.Edits(x.Candidates[0].Target); len(got) != 0 {
			t.Errorf("still known: %v", got)
		}
	})
	bubble(t, func(t *testing.T) { // what helps is learned, and used by the next
		no := refuse(400, `{"error":{"message":"Unsupported parameter: 'seed'","type":"invalid_request_error","param":"seed","code":"unsupported_parameter"}}`)
		g := newRig(map[string][]step{"a": {no, ok}})
		x := exchange(t, body, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if got := strings.Join(x.Actions(), " "); got != "adapt_parameter" {
			t.Errorf("did %q", got)
		}
		if got := g.facts.Edits(x.Candidates[0].Target); !slices.Equal(got, []recovery.Edit{{Field: "seed", Drop: true}}) {
			t.Errorf("learned %v", got)
		}
		if string(x.Body.Raw()) != body {
			t.Error("the client's bytes were changed")
		}
	})
	bubble(t, func(t *testing.T) { // refused in any shape: the client gets the refusal, soon
		g := newRig(map[string][]step{"a": {refuse(400, `{"error":{"message":"Unsupported parameter: 'seed'","param":"seed","code":"unsupported_parameter"}}`)}})
		f, err := g.run(t, t.Context(), exchange(t, body, "a"))
		if f == nil || err != nil || f.Class() != recovery.UnsupportedParameter || len(g.attempts) > 3 {
			t.Errorf("%v, %v after %d attempts", f, err, len(g.attempts))
		}
	})
	bubble(t, func(t *testing.T) { // a role, too
		g := newRig(map[string][]step{"a": {refuse(400, `{"error":{"message":"Unknown role 'developer'","param":"messages[0].role","code":"unsupported_value"}}`)}})
		f, err := g.run(t, t.Context(), exchange(t, `{"model":"m","messages":[{"role":"developer","content":"x"}]}`, "a"))
		if f == nil || err != nil || len(g.attempts) > 3 {
			t.Errorf("%v, %v after %d attempts", f, err, len(g.attempts))
		}
	})
}

// TestObserve: every mode but act makes one attempt at the first target, whatever is known.
func TestObserve(t *testing.T) {
	for _, mode := range []recovery.Mode{recovery.ModeObserve, recovery.ModeAnnotate, recovery.ModeOff} {
		for name, script := range map[string]step{"busy": busy, "limited": limited, "late": late(2*time.Minute, ok), "stall": stall("Hel", time.Minute),
			"cut": cut(recovery.ReleasedText, "Hel")} {
			for _, cooling := range []bool{false, true} {
				bubble(t, func(t *testing.T) {
					g := newRig(map[string][]step{"a": {script}, "b": {ok}})
					body := `{"model":"m","messages":[],"seed":1}`
					x := exchange(t, body, "ab")
					x.Mode = mode
					to := x.Candidates[0].Target
					g.facts.Learn(to, []recovery.Edit{{Field: "seed", Drop: true}}, "r1")
					if cooling {
						ticket, _ := g.health.Set.Begin(to, time.Now(), false, false)
						o := recovery.Outcome{Failure: &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(recovery.Auth)}}}
						ticket.Place.Done(ticket, o)
					}
					f, err := g.run(t, t.Context(), x)
					if want := name != "late" && name != "stall"; err != nil || (f != nil) != want {
						t.Errorf("%s, %s: ended with %v, %v", mode, name, f, err)
					}
					if got := g.asked(); got != "a" || string(g.attempts[0].Body) != body || !g.attempts[0].Plain {
						t.Errorf("%s, %s, cooling %v: asked %s", mode, name, cooling, got)
					}
					if len(x.Actions()) != 0 {
						t.Errorf("%s, %s: did %v", mode, name, x.Actions())
					}
					for _, ev := range g.observer.Events() {
						switch ev.Name {
						case recovery.EventRecoveryAttempt:
							if !ev.Observed || mode != recovery.ModeObserve {
								t.Errorf("%s, %s: %+v", mode, name, ev)
							}
						case recovery.EventRecoveryFailed, recovery.EventRecoverySuccess, recovery.EventFallbackUsed:
							t.Errorf("%s, %s: %+v", mode, name, ev)
						}
					}
				})
			}
		}
	}
}

// TestRealError: the client sees what an upstream said, not how a later connection broke.
func TestRealError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {busy, reset}})
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
		if err != nil || f == nil || f.Response.Status != 500 || !bytes.Contains(f.Response.Body, []byte("The server had an error")) {
			t.Errorf("%v, %v", f, err)
		}
	})
	bubble(t, func(t *testing.T) { // the last one that is real
		g := newRig(map[string][]step{"a": {busy}, "b": {refuse(503, envelope("overloaded")), reset}})
		g.Config.Attempts = 2
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "ab"))
		if err != nil || f == nil || f.Response.Status != 503 {
			t.Errorf("%v, %v", f, err)
		}
	})
	bubble(t, func(t *testing.T) { // after an outage the first target refuses the request as well
		no := refuse(400, envelope("Invalid value"))
		g := newRig(map[string][]step{"a": {busy, no}, "b": {no}})
		x := exchange(t, plainBody, "ab")
		for i := range x.Candidates {
			x.Candidates[i].Fallback = []recovery.Class{recovery.InvalidRequest}
		}
		f, err := g.run(t, t.Context(), x)
		if err != nil || f == nil || f.Response.Status != 400 || g.asked() != "aab" {
			t.Errorf("asked %s: %v, %v", g.asked(), f, err)
		}
	})
	bubble(t, func(t *testing.T) { // with nothing real, the connection's
		g := newRig(map[string][]step{"a": {reset}})
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
		if err != nil || f == nil || f.Class() != recovery.ServerError || f.Response.Status != 0 {
			t.Errorf("%v, %v", f, err)
		}
	})
	bubble(t, func(t *testing.T) { // a continuation's refusal is not what happened to the answer
		g := newRig(map[string][]step{"a": {cut(recovery.ReleasedText, "Hel"), refuse(400, envelope("Invalid value"))}})
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
		if err != nil || f == nil || f.Class() != recovery.StreamCut || f.Released != recovery.ReleasedText {
			t.Errorf("%v, %v", f, err)
		}
	})
}

func TestOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {overflow}, "b": {ok}, "c": {ok}})
		x := exchange(t, plainBody, "abc")
		x.Candidates[1].Window, x.Candidates[2].Window = 8000, 128_000
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if got := g.asked(); got != "ac" || !slices.Equal(x.Actions(), []string{"larger_window"}) {
			t.Errorf("asked %s, did %v", got, x.Actions())
		}
		if st := g.health.Check(x.Candidates[0].Target); !st.Ready {
			t.Errorf("an overflow was held against the target: %+v", st)
		}
	})
}

type stage func(*recovery.Exchange) error

func (s stage) Prepare(_ context.Context, x *recovery.Exchange) error { return s(x) }

func TestEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(nil)
		if _, err := g.Run(t.Context(), exchange(t, plainBody, ""), g); !errors.Is(err, recovery.ErrNoTarget) {
			t.Errorf("no target: %v", err)
		}
		no := errors.New("no")
		g.Stages = []recovery.Stage{stage(func(*recovery.Exchange) error { return no })}
		if _, err := g.Run(t.Context(), exchange(t, plainBody, "a"), g); !errors.Is(err, no) {
			t.Errorf("a stage's error: %v", err)
		}
	})
}

// Alarms are used again: every silent attempt is raced after the same time,
// whatever became of those before it.
func TestAlarmAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {ok, hang, ok, ok, hang, hang}, "b": {ok}})
		for i, want := range []struct {
			asked string
			after time.Duration
		}{{"a", 0}, {"aab", 10 * time.Second}, {"aaba", 0}, {"aabaa", 0}, {"aabaaab", 10 * time.Second}, {"aabaaabab", 10 * time.Second}} {
			x := exchange(t, plainBody, "ab")
			f, err := g.Run(t.Context(), x, g)
			if f != nil || err != nil || g.asked() != want.asked {
				t.Fatalf("exchange %d: %v, %v, asked %s, want %s", i, f, err, g.asked(), want.asked)
			}
			if got := x.Attempts[len(x.Attempts)-1].Started.Sub(x.Started); got != want.after {
				t.Errorf("exchange %d: the last attempt began after %v, want %v", i, got, want.after)
			}
			time.Sleep(time.Minute)
		}
	})
}
