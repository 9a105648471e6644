package recovery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// gives answers with n.
func gives(n func() *answer) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		made := n()
		if made.rest != nil {
			_, _ = g.answer(context.WithoutCancel(ctx), a, made.rest)
		}
		return g.answer(ctx, a, made)
	}
}

// flawedAs is flawed, and what becomes of the answer where the client gets it as it is.
func flawedAs(n func() *answer) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		held, _ := gives(n)(g, context.WithoutCancel(ctx), a)
		f := fail(a, recovery.Evidence{Phase: recovery.PhaseStream, Err: recovery.ErrFlawed})
		f.Flaw = &recovery.Flaw{Kind: recovery.FlawArguments, Tool: "ls"}
		return held, f
	}
}

// TestDelivered is how a delivery ends: for the client, for the target, and for an
// answer that was kept.
func TestDelivered(t *testing.T) {
	const text = "I will list."
	half := func(client bool) func() *answer {
		return func() *answer {
			return &answer{released: recovery.ReleasedText, sent: text, flaw: true, client: client, rest: &answer{client: client}}
		}
	}
	refusal := behind(text, refuse(400, envelope("Invalid value")))
	for _, c := range []struct {
		name     string
		a        []step
		leaves   time.Duration // when the client leaves, 0 for never
		err      error
		failed   recovery.Class
		asked    string
		got      int // the answer that the client got as it was, from 0; -1 for none
		degraded int
		beyond   int // input spent on attempts whose answer nobody got
	}{
		{name: "a client that cannot be written to", a: []step{gives(func() *answer { return &answer{client: true} })}, err: recovery.ErrClientGone, asked: "a",
			got: 0, beyond: 10},
		{name: "with something left of the answer", a: []step{gives(half(true))}, err: recovery.ErrClientGone, asked: "a", got: 1},
		{name: "a client that left meanwhile", a: []step{gives(func() *answer { return &answer{flaw: true} })}, leaves: 500 * time.Millisecond,
			err: recovery.ErrClientGone, asked: "a", got: -1, beyond: 10},
		{name: "the rest is mended", a: []step{gives(half(false)), ok}, asked: "aa", got: -1, beyond: 10},
		{name: "the rest cannot be mended", a: []step{gives(half(false)), refusal}, asked: "aa", got: 0, degraded: 1},
		{name: "the rest is not to be had, and the client has more of another answer", a: []step{gives(half(false)), cut(recovery.ReleasedText, text+" And then")},
			failed: recovery.ModelOutputInvalid, asked: "aaaaa", got: 1, beyond: 50},
		{name: "the rest is not to be had, and the client has a call of another answer", a: []step{gives(half(false)), cut(recovery.ReleasedCall, text)},
			failed: recovery.ModelOutputInvalid, asked: "aa", got: 1, beyond: 20},
		{name: "nothing better comes", a: []step{flawedAs(func() *answer { return &answer{} }), refuse(400, envelope("Invalid value"))}, asked: "aa", got: 0,
			degraded: 1},
		{name: "nothing better comes, and the client cannot be written to", a: []step{flawedAs(func() *answer { return &answer{client: true} }),
			refuse(400, envelope("Invalid value"))},
			err: recovery.ErrClientGone, asked: "aa", got: 0},
		{name: "nothing better comes, and it does not fit", a: []step{flawedAs(func() *answer { return &answer{breaks: true} }),
			refuse(400, envelope("Invalid value"))},
			failed: recovery.StreamCut, asked: "aa", got: 0},
		{name: "nothing better comes, and it does not fit, with something left", a: []step{flawedAs(func() *answer { return &answer{flaw: true, rest: &answer{}} }),
			refuse(400, envelope("Invalid value"))}, failed: recovery.ModelOutputInvalid, asked: "aa", got: 1},
		{name: "nothing better comes, and the client leaves", a: []step{flawedAs(func() *answer { return &answer{breaks: true} }),
			refuse(400, envelope("Invalid value"))},
			leaves: 500 * time.Millisecond, err: recovery.ErrClientGone, asked: "aa", got: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if c.leaves > 0 {
					time.AfterFunc(c.leaves, leave)
				}
				g.Config.Attempts = 2
				x := exchange(t, agentBody, "a")
				f, err := g.run(t, ctx, x)
				if !errors.Is(err, c.err) || (f == nil) != (c.failed == "") || f != nil && f.Class() != c.failed || g.asked() != c.asked {
					t.Errorf("ended with %v, %v; asked %s", f, err, g.asked())
				}
				if n := g.observer.Count(recovery.EventDegraded); n != c.degraded {
					t.Errorf("%d events tell that it is as the model wrote it", n)
				}
				if c.err != nil && g.health.places[0].outcomes[0].Failure != nil && len(c.asked) == 1 {
					t.Errorf("the target is blamed: %+v", g.health.places[0].outcomes[0].Failure)
				}
				for i, n := range g.answers {
					if c.got == i && n.delivered != 1 || c.got < 0 && i == 0 && n.delivered+n.discarded != 1 {
						t.Errorf("answer %d was delivered %d times", i, n.delivered)
					}
				}
				if to, used, beyond := x.Totals(); beyond.Input != c.beyond || c.degraded > 0 && (to.Upstream != "a" || used.Input != 10) {
					t.Errorf("%s used %d, beyond %d", to, used.Input, beyond.Input)
				}
			})
		})
	}
}
