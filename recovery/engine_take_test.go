package recovery_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// always are strategies that propose these actions in turn, whatever fails.
func always(actions ...recovery.Action) (list []recovery.Strategy) {
	n := 0
	for _, name := range []string{"wait", "resend", "reask", "resume", "mend_history"} {
		list = append(list, recovery.Strategy{Name: name, Propose: func(*recovery.Situation, *recovery.Failure) (recovery.Action, bool) {
			if n++; n > len(actions) {
				return recovery.Action{}, false
			}
			return actions[n-1], true
		}})
	}
	return list
}

// TestCarried: what an attempt asks of the model is asked again where the attempt met an
// outage, and only there. Work that is asked for again costs once.
func TestCarried(t *testing.T) {
	const text = "I will list."
	again := recovery.Action{}
	reask := recovery.Action{Reask: true, Note: "again, please", Tool: "ls"}
	calls := recovery.Action{Reask: true, Note: "again, please", Resume: &recovery.Resume{Sent: text, Calls: true}}
	explain := recovery.Action{Explain: true, Note: "say why", Tool: recovery.ToolNone}
	invalid := refuse(400, envelope("Invalid value"))
	for _, c := range []struct {
		name    string
		first   step // fails, then
		between step // the attempt of the first action
		actions []recovery.Action
		note    string // in the last attempt
		tool    string // called for there
		explain bool
		calls   bool
		extra   int
	}{
		{name: "a question for a flawed answer", first: flawed(""), between: busy, actions: []recovery.Action{reask, again}, note: "again, please",
			tool: `"name":"ls"}}`, extra: 1},
		{name: "twice", first: flawed(""), between: busy, actions: []recovery.Action{reask, again, again}, note: "again, please", tool: `"name":"ls"}}`, extra: 1},
		{name: "for the calls behind a text", first: flawed(text), between: behind(text, busy), actions: []recovery.Action{calls}, extra: 0},
		{name: "an explanation", first: busy, between: busy, actions: []recovery.Action{explain, again}, note: "say why", tool: `"none"`, explain: true},
		{name: "an explanation, twice", first: busy, between: busy, actions: []recovery.Action{explain, again, again}, note: "say why", tool: `"none"`,
			explain: true},
		{name: "a note about an outage is for one attempt", first: busy, between: busy, actions: []recovery.Action{{Note: "smaller", Tool: "ls"}, again}},
		{name: "not after a refusal of it", first: flawed(""), between: invalid, actions: []recovery.Action{reask, again}, extra: 1},
		{name: "not in place of a new question", first: flawed(""), between: busy, actions: []recovery.Action{reask, {Reask: true, Note: "another"}},
			note: "another", extra: 1},
		{name: "not in place of an explanation", first: flawed(""), between: busy, actions: []recovery.Action{reask, {Explain: true, Note: "say why"}},
			note: "say why", explain: true, extra: 1},
		{name: "not after another flaw", first: flawed(""), between: flawed(""), actions: []recovery.Action{reask, again}, extra: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {c.first, c.between, ok}})
				if n := len(c.actions); n > 2 {
					g.scripts["a"] = []step{c.first, c.between, c.between, ok}
				}
				g.Strategies = always(c.actions...)
				x := exchange(t, agentBody, "a")
				_, err := g.run(t, t.Context(), x)
				if err != nil || len(g.attempts) != len(c.actions)+1 {
					t.Fatalf("%v, %d attempts", err, len(g.attempts))
				}
				a := g.attempts[len(g.attempts)-1]
				body := string(a.Body)
				if c.calls || c.name == "for the calls behind a text" {
					if a.Resume == nil || !a.Resume.Calls {
						t.Errorf("resumed with %+v", a.Resume)
					}
					return
				}
				if c.note == "" && body != agentBody || !strings.Contains(body, c.note) || strings.Contains(body, "tool_choice") != (c.tool != "") ||
					!strings.Contains(body, c.tool) {
					t.Errorf("sent %s", body)
				}
				if a.Explain != c.explain || a.Resume != nil || x.Extra() != c.extra {
					t.Errorf("explains %t, resumes %v, extra %d", a.Explain, a.Resume, x.Extra())
				}
			})
		})
	}
	bubble(t, func(t *testing.T) { // calls only, over an outage
		g := newRig(map[string][]step{"a": {gives(func() *answer {
			return &answer{released: recovery.ReleasedText, sent: text, flaw: true, rest: &answer{}}
		}), behind(text, busy), ok}})
		g.Config.Graceful = recovery.GracefulError
		resends := inTurn("resume", recovery.Action{})
		g.Strategies = []recovery.Strategy{inTurn("reask", calls), resends}
		x := exchange(t, agentBody, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if len(g.attempts) != 3 || g.attempts[2].Resume == nil || !g.attempts[2].Resume.Calls || x.Extra() != 0 {
			t.Errorf("%d attempts, extra %d", len(g.attempts), x.Extra())
		}
	})
}

// TestWaits: a limit without a hint is waited for twice as long each time. Only waits
// count, not resends nor attempts at once.
func TestWaits(t *testing.T) {
	seed := refuse(400, `{"error":{"message":"Unsupported parameter: 'seed'","param":"seed","code":"unsupported_parameter"}}`)
	for _, c := range []struct {
		name  string
		steps []step
		waits []time.Duration
	}{
		{"limits", []step{limited, limited, limited, limited, ok}, []time.Duration{1, 2, 4, 8}},
		{"after a resend", []step{reset, limited, limited, ok}, []time.Duration{0, 1, 2}},
		{"after a change at once", []step{seed, limited, limited, ok}, []time.Duration{0, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.steps})
				f, err := g.run(t, t.Context(), exchange(t, `{"model":"m","seed":1,"messages":[]}`, "a"))
				answered(t, f, err)
				for i, want := range c.waits {
					want *= time.Second
					if got := g.attempts[i+1].at.Sub(g.attempts[i].at); got < want || got > want+want/10+500*time.Millisecond {
						t.Errorf("wait %d took %v, want %v", i, got, want)
					}
				}
			})
		})
	}
	bubble(t, func(t *testing.T) { // and what would have been waited is told where it is only observed
		g := newRig(map[string][]step{"a": {refuse(429, envelope("Rate limit reached"), "Retry-After", "7")}})
		x := exchange(t, plainBody, "a")
		x.Mode = recovery.ModeObserve
		_, _ = g.run(t, t.Context(), x)
		events := slices.DeleteFunc(g.observer.Events(), func(ev recovery.Event) bool { return ev.Name != recovery.EventRecoveryAttempt })
		if ev := events[0]; ev.Strategy != "wait" || ev.Wait < 7*time.Second || ev.Wait > 8*time.Second {
			t.Errorf("told %+v", ev)
		}
	})
}

// What answers to the contents of one request is not learned of its target.
func TestLearnsWhatLasts(t *testing.T) {
	for _, c := range []struct {
		edit recovery.Edit
		want bool
	}{
		{recovery.Edit{Conform: recovery.ConformMedia}, false},
		{recovery.Edit{Conform: recovery.ConformSignatures, Field: "all"}, false},
		{recovery.Edit{Conform: recovery.ConformSignatures}, true},
		{recovery.Edit{Conform: recovery.ConformKeyword, Field: "default"}, true},
		{recovery.Edit{Field: "seed", Drop: true}, true},
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {busy, ok}})
			g.Strategies = always(recovery.Action{Edits: []recovery.Edit{c.edit}})
			x := exchange(t, plainBody, "a")
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got := slices.Contains(g.facts.Edits(x.Candidates[0].Target), c.edit); got != c.want {
				t.Errorf("%s is learned: %t", c.edit, got)
			}
		})
	}
}

type pins []string

func (p *pins) Keep(pin string, t recovery.Target) { *p = append(*p, pin+" "+t.Upstream) }

// A session stays where it was moved to, and only then.
func TestKept(t *testing.T) {
	for _, c := range []struct {
		pin  string
		a    step
		want string
	}{{"s/1", reset, "s/1 b"}, {"s/1", ok, ""}, {"", reset, ""}, {"", ok, ""}} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {c.a}, "b": {ok}})
			p := &pins{}
			g.Keeper = p
			x := exchange(t, plainBody, "ab")
			x.Pin = c.pin
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got := strings.Join(*p, ","); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
		})
	}
}

// slowly takes a while to carry an edit out.
type slowly struct{}

func (slowly) Conform(b *transcript.Body, e *transcript.Editor, _ recovery.Edit) bool {
	time.Sleep(5 * time.Second)
	e.Delete("seed")
	return true
}

// An attempt begins when its bytes are ready: what that took is not the target's.
func TestStartOfAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {ok}})
		g.Conformer = slowly{}
		x := exchange(t, `{"model":"m","seed":1,"messages":[]}`, "a")
		g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{{Conform: recovery.ConformPairing}}, "r1")
		f, err := g.run(t, t.Context(), x) // checks when each was sent
		answered(t, f, err)
	})
}

// sized is a fitting to so many tokens.
type sized struct {
	fitter
	after int
}

func (s *sized) Prepare(_ context.Context, x *recovery.Exchange) error {
	x.Fitting = s
	return nil
}

func (s *sized) Fit(context.Context, *recovery.Choice, *recovery.Failure) *recovery.Fitted {
	f := s.wrap(s.fitted)
	f.After = s.after
	return f
}

// After a fitting each window is looked at anew.
func TestWindowsAfterFitting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {overflow, ok}})
		g.Stages = []recovery.Stage{&sized{fitter: fitter{fitted: parsed(t, smaller)}, after: 6000}}
		x := exchange(t, plainBody, "abcde")
		for i, window := range []int{8192, 0, 5999, 6000, 1} {
			x.Candidates[i].Window = window
		}
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		var got []bool
		for i := range x.Candidates {
			got = append(got, x.Candidates[i].Small)
		}
		if !slices.Equal(got, []bool{false, false, true, false, true}) {
			t.Errorf("too small: %v", got)
		}
	})
}

// What stages fitted is not sent where it is only observed.
func TestFittedObserved(t *testing.T) {
	for mode, sent := range map[recovery.Mode]string{recovery.ModeAct: smaller, recovery.ModeAnnotate: plainBody, recovery.ModeObserve: plainBody} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {ok}})
			g.Stages = []recovery.Stage{&fitter{known: parsed(t, smaller)}}
			x := exchange(t, plainBody, "a")
			x.Mode = mode
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got := string(g.attempts[0].Body); got != sent {
				t.Errorf("%s: sent %s", mode, got)
			}
		})
	}
}

// deadlines keeps the contexts of the calls that it is asked to make.
type deadlines []context.Context

func (d *deadlines) Complete(ctx context.Context, _ recovery.Prompt) (string, recovery.Usage, error) {
	*d = append(*d, ctx)
	return "", recovery.Usage{}, nil
}

// An extra call may be made where somebody makes it, has its time, and is over then.
func TestComplete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		x := exchange(t, plainBody, "a")
		if x.MayComplete() {
			t.Error("nobody makes it, and it may be made")
		}
		calls := &deadlines{}
		x.Completer = calls
		if !x.MayComplete() {
			t.Error("it may not be made")
		}
		_, _, _ = x.Complete(t.Context(), recovery.Prompt{})
		ctx := (*calls)[0]
		if end, ok := ctx.Deadline(); !ok || time.Until(end) != 2*time.Minute || ctx.Err() == nil {
			t.Errorf("until %v, %v", end, ctx.Err())
		}
	})
}
