package recovery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// TestSilent: a target that does not answer gets an alternative at its limit,
// keeps its chance, and is not asked again while another exists.
func TestSilent(t *testing.T) {
	cases := []struct {
		name  string
		a, b  []step
		to    string
		asked string
		took  time.Duration // to the answer, which takes a second more
		from  string
	}{
		{"alternative wins", []step{hang}, []step{ok}, "ab", "ab", 11 * time.Second, "b"},
		{"first still wins", []step{late(12*time.Second, ok)}, []step{late(5*time.Second, ok)}, "ab", "ab", 13 * time.Second, "a"},
		{"before its limit", []step{late(9900*time.Millisecond, ok)}, []step{ok}, "ab", "a", 10900 * time.Millisecond, "a"},
		{"no other", []step{hang, ok}, nil, "a", "aa", 31 * time.Second, "a"},
		{"first fails, alternative wins", []step{late(11*time.Second, busy)}, []step{late(4*time.Second, ok)}, "ab", "ab", 15 * time.Second, "b"},
		{"no other that can serve", []step{hang, ok}, []step{ok}, "a-b", "aa", 31 * time.Second, "a"},
		{"deaf loser", []step{deaf(60 * time.Second)}, []step{ok}, "ab", "ab", 61 * time.Second, "b"}, // Send returns when it returns
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				x := exchange(t, plainBody, strings.ReplaceAll(c.to, "-", ""))
				if strings.Contains(c.to, "-") {
					x.Candidates[1].Excluded = true
				}
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				if got := g.asked(); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
				if to, _, _ := x.Totals(); to.Upstream != c.from {
					t.Errorf("answered by %s", to)
				}
				if took := time.Since(x.Started) - time.Second; took < c.took || took > c.took+time.Second {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if want := len(c.asked) > 1; slices.Contains(x.Actions(), recovery.StrategyParallel) != want || (x.Extra() == 1) != want {
					t.Errorf("did %v, extra %d", x.Actions(), x.Extra())
				}
			})
		})
	}
	t.Run("not again", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {hang}, "b": {busy, busy, busy, ok}, "c": {busy, ok}})
			f, err := g.run(t, t.Context(), exchange(t, plainBody, "abc"))
			if got := g.asked(); strings.Count(got, "a") != 1 {
				t.Errorf("asked %s: %v, %v", got, f, err)
			}
		})
	})
	t.Run("time-out", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			down := func(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				return nil, fail(a, recovery.Evidence{Phase: recovery.PhaseConnect, Err: context.DeadlineExceeded})
			}
			g := newRig(map[string][]step{"a": {down}, "b": {busy, ok}})
			f, err := g.run(t, t.Context(), exchange(t, plainBody, "ab"))
			answered(t, f, err)
			if got := g.asked(); got != "abb" {
				t.Errorf("asked %s", got)
			}
		})
	})
}

// TestSilentAndDown: with no budget for a second attempt beside it, a silent
// target whose breaker is open, or half-open, is left; one whose breaker is not,
// is waited for.
func TestSilentAndDown(t *testing.T) {
	for _, at := range []time.Duration{8 * time.Second, 3 * time.Second, 0} { // it is open for five
		open := at > 0
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {late(25*time.Second, ok)}, "b": {ok}})
			g.Config.ExtraInput = 0
			x := exchange(t, plainBody, "ab")
			if open {
				time.AfterFunc(at, func() { // others find out meanwhile
					for range 5 {
						ticket, _ := g.health.Set.Begin(x.Candidates[0].Target, time.Now(), false, true)
						ticket.Place.Done(ticket, recovery.Outcome{Failure: &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(recovery.ServerError)}}})
					}
				})
			}
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got, want := g.asked(), map[bool]string{true: "ab", false: "a"}[open]; got != want {
				t.Errorf("open %v: asked %s, want %s", open, got, want)
			}
			if slices.Contains(x.Actions(), recovery.StrategyParallel) || slices.Contains(x.Actions(), "move") != open {
				t.Errorf("open %v: did %v", open, x.Actions())
			}
		})
	}
}

// TestDownMeanwhile: a breaker that opened while an answer was waited for, and closed by itself because nobody asked its
// target any more, is evidence when the limit passes; one that probes have closed is none.
func TestDownMeanwhile(t *testing.T) {
	for _, mended := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {late(5*time.Minute, ok)}, "b": {ok}})
			g.Config.ExtraInput = 0
			x := exchange(t, plainBody, "ab")
			x.Streaming = false
			outcome := func(o recovery.Outcome, times int) {
				for range times {
					ticket, _ := g.health.Set.Begin(x.Candidates[0].Target, time.Now(), false, true)
					ticket.Place.Done(ticket, o)
				}
			}
			time.AfterFunc(time.Second, func() {
				outcome(recovery.Outcome{Failure: &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(recovery.ServerError)}}}, 5)
			})
			if mended {
				time.AfterFunc(10*time.Second, func() { outcome(recovery.Outcome{Success: true}, 2) })
			}
			began := time.Now()
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got, want := g.asked(), map[bool]string{false: "ab", true: "a"}[mended]; got != want {
				t.Errorf("mended %v: asked %s, want %s", mended, got, want)
			}
			if took := time.Since(began); !mended && took > 65*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestGivenUp: where no attempt may be made beside it, a silent one is given up only where one that was sent
// later, with as large an input, was answered, and only once. The target is not asked again where there is another.
func TestGivenUp(t *testing.T) {
	large := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 82_000) + `"}]}` // 102,500 tokens: a limit of 30 s
	for _, c := range []struct {
		name     string
		body     string
		a, b     []step
		to       string
		set      func(g *rig, x *recovery.Exchange)
		answered string // body of the request that is answered after 40 s, empty for none
		asked    string
		took     time.Duration
	}{
		{name: "large, slow", body: large, a: []step{late(400*time.Second, ok)}, b: []step{ok}, to: "ab", asked: "a", took: 400 * time.Second},
		{name: "large, lost", body: large, a: []step{hang}, b: []step{busy, ok}, to: "ab", answered: large, asked: "abb", took: 60 * time.Second},
		{name: "large, headers came", body: large, a: []step{silentBody, ok}, b: []step{ok}, to: "ab", answered: large, asked: "ab", took: 60 * time.Second},
		{name: "large, a small one was answered", body: large, a: []step{late(400*time.Second, ok)}, b: []step{ok}, to: "ab", answered: plainBody, asked: "a",
			took: 400 * time.Second},
		{name: "large, alone", body: large, a: []step{hang, ok}, to: "a", answered: large, asked: "aa", took: 60 * time.Second},
		{name: "large, alone, twice", body: large, a: []step{hang, late(400*time.Second, ok)}, to: "a", answered: large, asked: "aa", took: 460 * time.Second},
		{name: "large, alone, slow", body: large, a: []step{late(400*time.Second, ok)}, to: "a", asked: "a", took: 400 * time.Second},
		{name: "large, writing", body: large, a: []step{began(5*time.Second, 300*time.Second)}, b: []step{ok}, to: "ab", answered: large, asked: "a", took: 300 * time.Second},
		{name: "no parallel starts", a: []step{hang}, b: []step{ok}, to: "ab", answered: plainBody, asked: "ab", took: 40 * time.Second,
			set: func(g *rig, _ *recovery.Exchange) { g.Config.Parallel.Enabled = false }},
		{name: "no budget", a: []step{hang}, b: []step{ok}, to: "ab", answered: plainBody, asked: "ab", took: 40 * time.Second,
			set: func(g *rig, _ *recovery.Exchange) { g.Config.ExtraInput = 0 }},
		{name: "no budget, signs of life", a: []step{shows(recovery.SignAlive, hang)}, b: []step{ok}, to: "ab", answered: plainBody, asked: "ab", took: 80 * time.Second,
			set: func(g *rig, _ *recovery.Exchange) { g.Config.ExtraInput = 0 }},
		{name: "the last attempt", a: []step{late(100*time.Second, ok)}, b: []step{ok}, to: "ab", answered: plainBody, asked: "a", took: 100 * time.Second,
			set: func(g *rig, _ *recovery.Exchange) { g.Config.Attempts = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				body := c.body
				if body == "" {
					body = plainBody
				}
				x := exchange(t, body, c.to)
				if c.set != nil {
					c.set(g, x)
				}
				if c.answered != "" {
					other := exchange(t, c.answered, c.to)
					time.AfterFunc(39900*time.Millisecond, func() { g.Pace.Answered(other, other.Candidates[0].Candidate, time.Now()) })
				}
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				if got := g.asked(); got != c.asked || slices.Contains(x.Actions(), recovery.StrategyParallel) || x.Extra() != 0 {
					t.Errorf("asked %s, want %s: did %v, extra %d", got, c.asked, x.Actions(), x.Extra())
				}
				if took := time.Since(x.Started) - 2*time.Second; took < c.took || took > c.took+2*time.Second {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got := x.Attempts[0].Class; (got == recovery.Timeout) != (len(c.asked) > 1) {
					t.Errorf("the silent one is booked as %q", got)
				}
				if o := g.health.places[0].outcomes[0]; o.Failure != nil {
					t.Errorf("the silent one is held against its target: %v", o.Failure)
				}
			})
		})
	}
}

// silentBody sends headers and nothing else.
func silentBody(_ *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	<-ctx.Done()
	return nil, fail(a, recovery.Evidence{Phase: recovery.PhaseStream, Err: context.Cause(ctx)})
}

// began writes after a while what the client cannot be shown yet, and is
// complete later.
func began(after, complete time.Duration) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		time.AfterFunc(after, func() { a.Life.Show(recovery.SignWrites) })
		return late(complete, ok)(g, ctx, a)
	}
}

// TestSilentOneAfterTheOther: each attempt that stays silent beyond its own
// limit gets another beside it, within the budget of extra input.
func TestSilentOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		name    string
		a, b, c []step
		to      string
		asked   string
		took    time.Duration
	}{
		{"two silent, the third answers", []step{hang}, []step{hang}, []step{ok}, "abc", "abc", 20 * time.Second},
		{"the second fails", []step{hang}, []step{busy, ok}, nil, "ab", "abb", 10500 * time.Millisecond},
		{"the second refuses", []step{late(80*time.Second, ok)}, []step{refuse(400, envelope("Invalid value")), ok}, nil, "ab", "ab", 80 * time.Second},
		{"the first fails", []step{late(11*time.Second, busy)}, []step{hang}, []step{ok}, "abc", "abc", 20 * time.Second},
		{"the second is limited", []step{hang}, []step{limited}, []step{ok}, "abc", "abc", 10500 * time.Millisecond},
		{"a third would be too much", []step{hang}, []step{hang}, []step{late(25*time.Second, ok)}, "abcc", "abc", 45 * time.Second},
		{"one target, once more only", []step{hang, late(200*time.Second, ok)}, nil, nil, "a", "aa", 230 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b, "c": c.c})
				x := exchange(t, plainBody, c.to)
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				if got := g.asked(); got != c.asked || x.Extra() != len(c.asked)-1 {
					t.Errorf("asked %s, want %s: did %v, extra %d", got, c.asked, x.Actions(), x.Extra())
				}
				if took := time.Since(x.Started) - 2*time.Second; took < c.took || took > c.took+time.Second {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestLocal: a local target may be silent for as long as it likes, unless
// another one may be asked.
func TestLocal(t *testing.T) {
	for _, c := range []struct {
		to, asked string
		local     bool // the other one, too
		took      time.Duration
	}{{"a", "a", false, 300 * time.Second}, {"ab", "ab", false, 30 * time.Second}, {"ab", "ab", true, 10 * time.Second}} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {late(300*time.Second, ok)}, "b": {ok}})
			x := exchange(t, plainBody, c.to)
			for i := range x.Candidates {
				x.Candidates[i].Local = i == 0 || c.local
			}
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if took := time.Since(x.Started) - 2*time.Second; g.asked() != c.asked || took < c.took || took > c.took+time.Second {
				t.Errorf("asked %s, want %s, after %v", g.asked(), c.asked, took)
			}
		})
	}
}

// TestLoserSettled: the loser is cancelled at once, and booked once, as no failure of its target.
func TestLoserSettled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var cause error
		g := newRig(map[string][]step{"b": {ok}, "a": {func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return hang(g, ctx, a)
		}}})
		x := exchange(t, plainBody, "ab")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("the loser ended by %v", cause)
		}
		if o := g.health.places[0].outcomes[0]; o.Failure != nil || o.Success {
			t.Errorf("the loser is booked as %+v", o)
		}
		if r := x.Attempts; r[0].Class != recovery.Timeout || r[1].Class != "" || !r[1].Parallel {
			t.Errorf("%+v", r)
		}
	})
}

// TestResendsCrowded: where enough blind resends are under way, another target is
// asked, which takes none of its resends; with no other the request waits for a
// place, and no longer than an outage is waited out.
func TestResendsCrowded(t *testing.T) {
	for _, c := range []struct {
		to, asked string
		least     time.Duration
		ok        bool
	}{{"ab", "ab", 0, true}, {"a", "a", 30 * time.Second, false}} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {busy}, "b": {ok}})
			x := exchange(t, plainBody, c.to)
			for i := range x.Candidates {
				for range 3 {
					g.health.Set.Begin(x.Candidates[i].Target, time.Now(), true, true)
				}
			}
			f, err := g.run(t, t.Context(), x)
			if err != nil || (f == nil) != c.ok || g.asked() != c.asked {
				t.Errorf("asked %s, ended with %v, %v", g.asked(), f, err)
			}
			if took := time.Since(x.Started); took < c.least || took > c.least+4*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// Where the first still wins, the second is nobody's fault: it had no time to answer.
func TestWinnerSettled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {late(12*time.Second, ok)}, "b": {hang}})
		x := exchange(t, plainBody, "ab")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if o := g.health.places[1].outcomes[0]; o.Failure != nil || o.Success {
			t.Errorf("the second is booked as %+v", o)
		}
	})
}

// At the deadline no attempt is begun beside a silent one.
func TestDeadlineBesideNone(t *testing.T) {
	for range 10 {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {hang}, "b": {ok}})
			x := exchange(t, plainBody, "ab")
			x.Patience = 3 * time.Second
			if f, err := g.run(t, t.Context(), x); f == nil || err != nil || g.asked() != "a" {
				t.Errorf("asked %s: %v, %v", g.asked(), f, err)
			}
		})
	}
}

// TestRescues: a pause is looked after from its beginning on, twice at the most, and for
// as long as it lasts.
func TestRescues(t *testing.T) {
	const text = "This is the beginning of an answer"
	no := behind(text, refuse(400, envelope("Invalid value")))
	flowing := func(flows, pause time.Duration) step {
		return gives(func() *answer {
			return &answer{released: recovery.ReleasedText, sent: text, flows: flows, pause: pause}
		})
	}
	for _, c := range []struct {
		name    string
		a, b, c []step
		to      string
		asked   string
		tries   int // that were planned
		took    time.Duration
	}{
		{name: "a pause that begins late", a: []step{flowing(15*time.Second, time.Hour)}, b: []step{ok}, to: "ab", asked: "ab", tries: 1, took: 35 * time.Second},
		{name: "nobody helps", a: []step{flowing(0, time.Minute)}, b: []step{no}, c: []step{no}, to: "abcd", asked: "abc", tries: 2, took: time.Minute},
		{name: "nobody helps in time", a: []step{flowing(0, 25*time.Second)}, b: []step{late(time.Minute, no)}, to: "abc", asked: "ab", tries: 1,
			took: 25 * time.Second},
		{name: "one helps in part", a: []step{flowing(0, time.Minute)}, b: []step{behind(text, flawed(""))}, to: "ab", asked: "abb", tries: 2, took: time.Minute},
		{name: "one takes over, and breaks", a: []step{flowing(0, time.Hour), ok}, b: []step{cut(recovery.ReleasedText, text)}, c: []step{ok}, to: "abc",
			asked: "abc", tries: 2, took: 22 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": append(c.a, no), "b": c.b, "c": c.c, "d": {ok}})
				if c.name == "one takes over, and breaks" {
					g.scripts["a"] = c.a
				}
				x := exchange(t, plainBody, c.to)
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				if n := g.observer.Count(recovery.EventRecoveryAttempt); g.asked() != c.asked || n != c.tries {
					t.Errorf("asked %s, want %s: %d tries", g.asked(), c.asked, n)
				}
				if took := time.Since(x.Started) - time.Second; took < c.took || took > c.took+2*time.Second {
					t.Errorf("took %v, want %v", took, c.took)
				}
				for _, n := range g.answers {
					if n.discarded > 1 {
						t.Error("an answer was discarded twice")
					}
				}
			})
		})
	}
}

// TestWhole: an answer that is not streamed is no silence while it is written.
func TestWhole(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		to    string
		asked string
		took  time.Duration
		from  string
	}{
		{"slow", 13 * time.Second, "ab", "a", 13 * time.Second, "a"},
		{"slow, alone", 35 * time.Second, "a", "a", 35 * time.Second, "a"},
		{"very slow", 70 * time.Second, "ab", "ab", 62 * time.Second, "b"},
		{"very slow, alone", 61 * time.Second, "a", "aa", 61 * time.Second, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {late(c.takes, ok)}, "b": {late(2*time.Second, ok)}})
				x := exchange(t, plainBody, c.to)
				x.Streaming = false
				f, err := g.run(t, t.Context(), x)
				answered(t, f, err)
				took := time.Since(x.Started) - 2*time.Second // it is delivered for one, and losers settle
				if to, _, _ := x.Totals(); g.asked() != c.asked || to.Upstream != c.from || took.Round(time.Second/10) != c.took {
					t.Errorf("asked %s, answered by %s after %v", g.asked(), to, took)
				}
			})
		})
	}
}

// TestClientsOwnLimit: that a client cannot wait says nothing of the target.
func TestClientsOwnLimit(t *testing.T) {
	for _, patience := range []time.Duration{50 * time.Millisecond, 0} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {late(time.Hour, ok)}})
			g.Config.Deadline = 50 * time.Millisecond
			for range 25 {
				x := exchange(t, plainBody, "a")
				x.Patience = patience
				if f, err := g.Run(t.Context(), x, g); f == nil || err != nil || f.Class() != recovery.Timeout {
					t.Fatalf("ended with %v, %v", f, err)
				}
			}
			open := g.health.Set.Check(recovery.Target{Upstream: "a", Model: "m"}).Open
			if own := patience > 0; own == open || own != (g.health.Ready() == nil) {
				t.Errorf("the client's own limit: %v; open: %v; ready: %v", own, open, g.health.Ready())
			}
		})
	}
}
