package recovery_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/store"
)

// cool keeps a target from being asked for a while.
func (g *rig) cool(t recovery.Target, d time.Duration) {
	g.board.Post(breaker.BoardCooldowns, store.Field{Name: t.String(), Until: time.Now().Add(d)}, true)
}

// down opens a target's breaker for five seconds.
func (g *rig) down(t recovery.Target) {
	for range 5 {
		ticket, _ := g.health.Set.Begin(t, time.Now(), false, true)
		ticket.Place.Done(ticket, recovery.Outcome{Failure: &recovery.Failure{Diagnosis: recovery.Diagnosis{Spec: table.Spec(recovery.ServerError)}}})
	}
}

// TestNotReady: a target that may not be asked now is waited for where nothing else may be
// asked and the wait is short enough; else it is asked all the same, as a plain proxy would.
func TestNotReady(t *testing.T) {
	const text = "This is the beginning of an answer"
	for _, c := range []struct {
		name     string
		a        []step
		to       string
		cool     time.Duration
		mode     recovery.Mode
		patience time.Duration
		down     bool
		asked    string
		actions  string
		took     time.Duration // to the last attempt
	}{
		{name: "cools", to: "a", cool: 3 * time.Second, asked: "a", actions: "wait", took: 3 * time.Second},
		{name: "cools for as long as may be", to: "a", cool: time.Minute, asked: "a", actions: "wait", took: time.Minute},
		{name: "cools for too long", to: "a", cool: 61 * time.Second, asked: "a"},
		{name: "cools for longer than the client waits", to: "a", cool: 5 * time.Second, patience: 2 * time.Second, asked: "a"},
		{name: "cools, and is only observed", to: "a", cool: 3 * time.Second, mode: recovery.ModeObserve, asked: "a"},
		{name: "is down", to: "a", down: true, asked: "a"},
		{name: "is down before a resend", to: "a", asked: "aa", actions: "resend", took: 375 * time.Millisecond,
			a: []step{func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				g.down(a.Target.Target)
				return busy(g, ctx, a)
			}, ok}},
		{name: "cools before a resend", to: "a", asked: "aa", actions: "wait resend", took: 20 * time.Second,
			a: []step{func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				g.cool(a.Target.Target, 20*time.Second)
				return reset(g, ctx, a)
			}, ok}},
		{name: "cools, another is ready", to: "ab", cool: 3 * time.Second, asked: "b"},
		{name: "cools, another is ready, and it is only observed", to: "ab", cool: 3 * time.Second, mode: recovery.ModeObserve, asked: "a"},
		{name: "cools when its answer is to be continued", to: "ab", asked: "aa", actions: "wait resume", took: 5 * time.Second,
			a: []step{func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				g.cool(a.Target.Target, 5*time.Second)
				return cut(recovery.ReleasedText, text)(g, ctx, a)
			}, ok}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if c.a == nil {
					c.a = []step{ok}
				}
				g := newRig(map[string][]step{"a": c.a, "b": {ok}})
				x := exchange(t, plainBody, c.to)
				x.Patience = c.patience
				if c.mode != "" {
					x.Mode = c.mode
				}
				if c.cool > 0 {
					g.cool(x.Candidates[0].Target, c.cool)
				}
				if c.down {
					g.down(x.Candidates[0].Target)
				}
				f, err := g.Run(t.Context(), x, g)
				answered(t, f, err)
				if got := g.asked(); got != c.asked || strings.Join(x.Actions(), " ") != c.actions {
					t.Errorf("asked %s, did %v; want %s, %s", got, x.Actions(), c.asked, c.actions)
				}
				if took := g.attempts[len(g.attempts)-1].at.Sub(x.Started); took < c.took || took > c.took+time.Second {
					t.Errorf("asked after %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestNotAgain: a target that cannot help is not asked again, and neither are those that are
// the same to the failure.
func TestNotAgain(t *testing.T) {
	const text = "This is the beginning of an answer"
	gone := refuse(404, `{"error":{"message":"The model m does not exist","code":"model_not_found"}}`)
	for _, c := range []struct {
		name  string
		a, b  []step
		to    string
		set   func(g *rig, x *recovery.Exchange)
		asked string
	}{
		{name: "no such model, with another key", a: []step{gone}, b: []step{ok}, to: "aab", asked: "ab", set: func(_ *rig, x *recovery.Exchange) {
			x.Candidates[1].Key = "other"
			for i := range x.Candidates {
				x.Candidates[i].Fallback = []recovery.Class{recovery.ModelNotFound}
			}
		}},
		{name: "no such model, another model there", a: []step{gone, ok}, b: []step{ok}, to: "aab", asked: "aa", set: func(_ *rig, x *recovery.Exchange) {
			x.Candidates[1].Model = "other"
			for i := range x.Candidates {
				x.Candidates[i].Fallback = []recovery.Class{recovery.ModelNotFound}
			}
		}},
		{name: "a window that is known to be no larger", a: []step{overflow}, b: []step{ok}, to: "ab", asked: "a", set: func(g *rig, x *recovery.Exchange) {
			g.facts.LearnWindow(x.Candidates[1].Target, 8192, "r1")
		}},
		{name: "a window that is known to be larger", a: []step{overflow}, b: []step{ok}, to: "ab", asked: "ab", set: func(g *rig, x *recovery.Exchange) {
			g.facts.LearnWindow(x.Candidates[1].Target, 32_768, "r1")
		}},
		{name: "a continuation that began anew", to: "a", asked: "aaa", a: []step{cut(recovery.ReleasedText, text),
			func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
				n, f := behind(text, reset)(g, ctx, a)
				f.Diverged = true
				return n, f
			}}},
		{name: "a continuation that was refused", to: "a", asked: "aaa", a: []step{cut(recovery.ReleasedText, text), behind(text, refuse(400, envelope("Invalid value")))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				x := exchange(t, plainBody, c.to)
				if c.set != nil {
					c.set(g, x)
				}
				_, _ = g.run(t, t.Context(), x)
				if got := g.asked(); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
			})
		})
	}
}

// probing is a sender that finds out how targets continue an answer.
type probing struct {
	*rig
	looked []string
}

func (p *probing) Prefill(_ context.Context, c recovery.Candidate) recovery.Prefill {
	p.looked = append(p.looked, c.Upstream)
	return recovery.PrefillAssistant
}

// TestProbe: how a target continues an answer is found out after a cut, where that is not
// known and may be used.
func TestProbe(t *testing.T) {
	const text = "This is the beginning of an answer"
	for _, c := range []struct {
		name   string
		set    func(g *rig, x *recovery.Exchange)
		looked string
		way    recovery.Way
	}{
		{"unknown", func(*rig, *recovery.Exchange) {}, "ab", recovery.WayPrefill},
		{"known", func(_ *rig, x *recovery.Exchange) { x.Candidates[0].Prefill = recovery.PrefillNone }, "b", recovery.WayPrefill},
		{"not used", func(g *rig, _ *recovery.Exchange) { g.Config.Continue = []recovery.Way{recovery.WayAsk} }, "", recovery.WayAsk},
		{"cools", func(g *rig, x *recovery.Exchange) { g.cool(x.Candidates[1].Target, time.Hour) }, "a", recovery.WayPrefill},
		{"out", func(_ *rig, x *recovery.Exchange) { x.Candidates[1].Excluded = true }, "a", recovery.WayPrefill},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := &probing{rig: newRig(map[string][]step{"a": {cut(recovery.ReleasedText, text), ok}, "b": {ok}})}
				x := exchange(t, plainBody, "ab")
				for i := range x.Candidates {
					x.Candidates[i].Prefill = recovery.PrefillAuto
				}
				c.set(p.rig, x)
				f, err := p.Run(t.Context(), x, p)
				answered(t, f, err)
				if got := strings.Join(p.looked, ""); got != c.looked {
					t.Errorf("looked at %s, want %s", got, c.looked)
				}
				if i := slices.IndexFunc(p.attempts, func(a sent) bool { return a.Resume != nil }); i < 0 || p.attempts[i].Resume.Way != c.way {
					t.Errorf("not continued by %s: %d", c.way, i)
				}
			})
		})
	}
}

// TestPatienceOfContinuation: who has half of an answer waits as long for the rest as for the
// beginning.
func TestPatienceOfContinuation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {cut(recovery.ReleasedText, "This is the beginning of an answer"), late(1500*time.Millisecond, ok)}})
		x := exchange(t, plainBody, "a")
		x.Patience = 2500 * time.Millisecond
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
	})
}
