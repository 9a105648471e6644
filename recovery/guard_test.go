package recovery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// breakingFitter breaks in one of its methods.
type breakingFitter struct {
	fitter
	at string
}

func (s *breakingFitter) broken(at string) {
	if s.at == at {
		panic("no such tier")
	}
}

func (s *breakingFitter) Prepare(_ context.Context, x *recovery.Exchange) error {
	x.Fitting = s
	s.broken("prepare")
	return nil
}

func (s *breakingFitter) Fit(context.Context, *recovery.Choice, *recovery.Failure) *recovery.Fitted {
	s.broken("fit")
	return nil
}

func (s *breakingFitter) Learn(*recovery.Choice, recovery.Usage) { s.broken("settle") }

type breakingConformer struct{}

func (breakingConformer) Conform(*transcript.Body, *transcript.Editor, recovery.Edit) bool {
	panic("no such edit")
}

// breakingPace breaks in one of its methods.
type breakingPace struct {
	recovery.Pace
	at string
}

func (p breakingPace) Limits(x *recovery.Exchange, c recovery.Candidate, alternative bool) recovery.Limits {
	if p.at == "limit" {
		panic("no such model")
	}
	return p.Pace.Limits(x, c, alternative)
}

func (p breakingPace) Allow(x *recovery.Exchange) bool {
	if p.at == "allow" {
		panic("no such model")
	}
	return p.Pace.Allow(x)
}

func (p breakingPace) Observe(x *recovery.Exchange, c recovery.Candidate, d time.Duration, u recovery.Usage) {
	if p.at == "observe" {
		panic("no such model")
	}
	p.Pace.Observe(x, c, d, u)
}

// breakingClassifier breaks at evidence from one phase.
type breakingClassifier struct {
	recovery.Classifier
	phase recovery.Phase
}

func (c breakingClassifier) Classify(ev recovery.Evidence) recovery.Diagnosis {
	if ev.Phase == c.phase {
		panic("no such rule")
	}
	return c.Classifier.Classify(ev)
}

type breakingKeeper struct{}

func (breakingKeeper) Keep(string, recovery.Target) { panic("no such pin") }

// breaks puts a strategy that breaks in the place of another.
func (g *rig) breaks(name string) {
	list := slices.Clone(g.Strategies)
	for i, st := range list {
		if st.Name == name {
			list[i].Propose = func(*recovery.Situation, *recovery.Failure) (recovery.Action, bool) { panic("no such target") }
		}
	}
	g.Strategies = list
}

// TestPartsBreak: whichever part of the recovery breaks, the request goes on
// without it, and one event tells what broke.
func TestPartsBreak(t *testing.T) {
	silent := step(late(15*time.Second, ok))
	cases := []struct {
		name  string
		a, b  []step
		to    string
		mode  recovery.Mode
		set   func(g *rig, x *recovery.Exchange)
		asked string
		sent  string // with the last attempt; empty for the client's own bytes
		class recovery.Class
		cause string
	}{
		{name: "a stage", a: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) {
				x.Guidance, x.Reply = "half a no", &recovery.Reply{}
				panic("no such turn")
			}),
				prepares(func(x *recovery.Exchange) { x.Session = "s" })}
		}, asked: "a", cause: "stage broke: no such turn"},
		{name: "what is known beforehand", a: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Stages = []recovery.Stage{&breakingFitter{at: "prepare"}}
		}, asked: "a", cause: "stage broke: no such tier"},
		{name: "fitting after an overflow", a: []step{overflow}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Stages = []recovery.Stage{&breakingFitter{at: "fit"}}
			x.Candidates[1].Window = 4096
		}, asked: "a", class: recovery.ContextLengthExceeded, cause: "fitter broke: no such tier"},
		{name: "fitting, and a larger window", a: []step{overflow}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Stages = []recovery.Stage{&breakingFitter{at: "fit"}}
			x.Candidates[1].Window = 1_000_000
		}, asked: "ab", cause: "fitter broke: no such tier"},
		{name: "what the answer teaches the fitter", a: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Stages = []recovery.Stage{&breakingFitter{at: "settle"}}
		}, asked: "a", cause: "fitter broke: no such tier"},
		{name: "the conformer", a: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Conformer = breakingConformer{}
			g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Conform: recovery.ConformPairing}}, "r1")
		}, asked: "a", cause: "editor broke: no such edit"},
		{name: "the windows of the others", a: []step{overflow}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Knowledge, x.Candidates[0].Window = breakingKnowledge{g.Knowledge}, 8192
		}, asked: "ab", cause: "windows broke: no such board"},
		{name: "a strategy", a: []step{busy}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) { g.breaks("resend") }, asked: "ab", cause: "resend broke: no such target"},
		{name: "a strategy that is observed", a: []step{busy}, mode: recovery.ModeObserve, set: func(g *rig, x *recovery.Exchange) { g.breaks("resend") },
			asked: "a", class: recovery.ServerError, cause: "resend broke: no such target"},
		{name: "the time that a target gets", a: []step{silent}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Pace = breakingPace{g.Pace, "limit"}
		}, asked: "a", cause: "pace broke: no such model"},
		{name: "what the answer teaches of it", a: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Pace = breakingPace{g.Pace, "observe"}
		}, asked: "a", cause: "pace broke: no such model"},
		{name: "planning a second attempt", a: []step{silent}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Pace = breakingPace{g.Pace, "allow"}
		}, asked: "a", cause: "second attempt broke: no such model"},
		{name: "making a second attempt", a: []step{silent}, b: []step{func(*rig, context.Context, recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			panic("no such host")
		}}, set: func(*rig, *recovery.Exchange) {}, asked: "ab", cause: "attempt broke: no such host"},
		{name: "an attempt", a: []step{func(*rig, context.Context, recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			panic("no such host")
		}}, b: []step{ok}, set: func(*rig, *recovery.Exchange) {}, asked: "a", class: recovery.Unknown, cause: "attempt broke: no such host"},
		{name: "a delivery", a: []step{func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			return g.answer(ctx, a, &answer{panics: true})
		}}, b: []step{ok}, set: func(*rig, *recovery.Exchange) {}, asked: "a", class: recovery.Unknown, cause: "delivery broke: no such byte"},
		{name: "rescuing a paused answer", a: []step{stall("Hel", time.Minute)}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Classifier = breakingClassifier{g.Classifier, recovery.PhaseStream}
		}, asked: "a", cause: "rescue broke: no such rule"},
		{name: "keeping a target", a: []step{busy}, b: []step{ok}, set: func(g *rig, x *recovery.Exchange) {
			g.Keeper, x.Pin = breakingKeeper{}, "s/1"
		}, asked: "aab", cause: "learner broke: no such pin"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				x := exchange(t, plainBody, "ab")
				if c.mode != "" {
					x.Mode = c.mode
				}
				c.set(g, x)
				f, err := g.run(t, t.Context(), x)
				if err != nil || (f == nil) != (c.class == "") || f != nil && f.Class() != c.class {
					t.Errorf("ended with %v, %v", f, err)
				}
				if got := g.asked(); got != c.asked {
					t.Errorf("asked %s, want %s", got, c.asked)
				}
				for _, a := range g.attempts {
					if string(a.Body) != plainBody || a.Edited {
						t.Errorf("sent %s", a.Body)
					}
				}
				told := []string{}
				for _, ev := range g.observer.Events() {
					if ev.Name == recovery.EventDegraded && strings.HasPrefix(ev.Cause, "the gateway's ") {
						told = append(told, strings.TrimPrefix(ev.Cause, "the gateway's "))
					}
				}
				if n := g.observer.Count(recovery.EventRecoveryFailed); (n == 1) != (f != nil && x.Mode == recovery.ModeAct) {
					t.Errorf("%d events say that the client got an error, and it got %v", n, f)
				}
				if len(told) != 1 || told[0] != c.cause {
					t.Errorf("told %q, want %q", told, c.cause)
				}
			})
		})
	}
}

// TestRaceBreaks: where the watch over a silent attempt breaks, that attempt is
// what there is.
func TestRaceBreaks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		time.AfterFunc(40*time.Second, leave)
		g := newRig(map[string][]step{"a": {hang}, "b": {ok}})
		g.Config.Parallel.Enabled = false
		g.Classifier = breakingClassifier{g.Classifier, recovery.PhaseHeaders}
		if f, err := g.run(t, ctx, exchange(t, plainBody, "a")); f != nil || !errors.Is(err, recovery.ErrClientGone) {
			t.Errorf("ended with %v, %v", f, err)
		}
		if n := g.observer.Count(recovery.EventDegraded); n != 1 || g.observer.Events()[0].Cause != "the gateway's race broke: no such rule" {
			t.Errorf("told %+v", g.observer.Events())
		}
	})
}

// breakingUsage is an answer that breaks when it is asked what it took.
type breakingUsage struct{ *answer }

func (breakingUsage) Usage() (recovery.Usage, time.Duration) { panic("no such field") }

// Where the watch breaks when it has booked the attempt, that is not booked again, and
// the answer that came with its failure is not lost.
func TestRaceBreaksLate(t *testing.T) {
	breaking := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		n, f := flawed("")(g, ctx, a)
		return breakingUsage{n.(*answer)}, f
	}
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {flawed(""), late(35*time.Second, breaking)}})
		g.Config.Parallel.Enabled = false
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		answered(t, f, err) // with the first, as it was
		if g.asked() != "aa" || g.answers[0].delivered != 1 || !strings.Contains(g.observer.Names(), "recovery_degraded recovery_degraded") {
			t.Errorf("asked %s, told %s", g.asked(), g.observer.Names())
		}
	})
}

// breakingKnowledge breaks when it is asked for a window.
type breakingKnowledge struct{ recovery.Knowledge }

func (breakingKnowledge) Window(recovery.Target) int { panic("no such board") }

// TestContinuationBreaks: a continuation that breaks leaves the failure that it
// answered to, whichever part of the attempt breaks.
func TestContinuationBreaks(t *testing.T) {
	half := cut(recovery.ReleasedText, "Hel")
	send := func(*rig, context.Context, recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		panic("no such host")
	}
	deliver := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		return g.answer(ctx, a, &answer{panics: true})
	}
	for name, c := range map[string]struct {
		begin, continuation step
		prefill             recovery.Prefill
		cause               string
	}{
		"sending a prefill":    {half, send, recovery.PrefillAssistant, "attempt broke: no such host"},
		"sending a replay":     {half, send, recovery.PrefillNone, "attempt broke: no such host"},
		"delivering a prefill": {half, deliver, recovery.PrefillAssistant, "delivery broke: no such byte"},
		"delivering a replay":  {half, deliver, recovery.PrefillNone, "delivery broke: no such byte"},
		"sending in a pause":   {stall("Hel", 10*time.Minute), send, recovery.PrefillAssistant, "attempt broke: no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {c.begin, c.continuation}})
				x := exchange(t, sampleless, "a")
				x.Candidates[0].Prefill = c.prefill
				f, err := g.run(t, t.Context(), x)
				if name == "sending in a pause" {
					answered(t, f, err) // it went on by itself
				} else if err != nil || f == nil || f.Class() != recovery.StreamCut || f.Sent != "Hel" {
					t.Errorf("ended with %v, %v", f, err)
				}
				if n := g.observer.Count(recovery.EventDegraded); n != 1 {
					t.Errorf("told %+v", g.observer.Events())
				}
				for _, ev := range g.observer.Events() {
					if ev.Name == recovery.EventDegraded && ev.Cause != "the gateway's "+c.cause {
						t.Errorf("told %q", ev.Cause)
					}
				}
			})
		})
	}
}

// sampleless is a request whose answer is the same each time.
const sampleless = `{"model":"m","temperature":0,"messages":[{"role":"user","content":"hello"}]}`

// TestPrefillNeedsItsEdit: where the editor breaks, a continuation is not sent
// without the beginning that it is to continue: the answer to the bare request
// would be glued on.
func TestPrefillNeedsItsEdit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {cut(recovery.ReleasedText, "Hel"), ok}})
		x := exchange(t, sampleless, "a")
		x.Candidates[0].Prefill = recovery.PrefillAssistant
		broken := false
		g.Conformer = conforms(func() bool {
			if broken = len(g.attempts) > 0; broken {
				panic("no such edit")
			}
			return false
		})
		g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Conform: recovery.ConformPairing}}, "r1")
		f, err := g.run(t, t.Context(), x)
		if err != nil || f == nil || f.Class() != recovery.StreamCut || !broken {
			t.Errorf("ended with %v, %v (the editor broke: %v)", f, err, broken)
		}
		for _, a := range g.attempts {
			if a.Resume != nil && a.Resume.Way == recovery.WayPrefill && !strings.Contains(string(a.Body), "Hel") {
				t.Errorf("asked to continue what is not in %s", a.Body)
			}
		}
	})
}

type conforms func() bool

func (c conforms) Conform(*transcript.Body, *transcript.Editor, recovery.Edit) bool { return c() }
