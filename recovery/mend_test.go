package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/conform"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// agentBody is a request in the middle of a conversation, with a tool.
const agentBody = `{"model":"m","messages":[{"role":"user","content":"list"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"ls","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"a b"}],"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object"}}}]}`

// fitter makes a request smaller, or cannot.
type fitter struct {
	known, fitted *transcript.Body
	fits, settled int
	committed     int
}

func (s *fitter) wrap(b *transcript.Body) *recovery.Fitted {
	if b == nil {
		return nil
	}
	return &recovery.Fitted{Body: b, Compression: recovery.Compression{Tiers: []string{"t"}}}
}

func (s *fitter) Prepare(_ context.Context, x *recovery.Exchange) error {
	x.Fitting, x.Fitted = s, s.wrap(s.known)
	return nil
}
func (s *fitter) Fit(context.Context, *recovery.Choice, *recovery.Failure) *recovery.Fitted {
	s.fits++
	return s.wrap(s.fitted)
}
func (s *fitter) Commit()                                { s.committed++ }
func (s *fitter) Learn(*recovery.Choice, recovery.Usage) { s.settled++ }

func parsed(t testing.TB, body string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, body, transcript.Chat)
}

const smaller = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

func TestRefit(t *testing.T) {
	bubble(t, func(t *testing.T) { // the same target gets a smaller request
		g := newRig(map[string][]step{"a": {overflow, ok}, "b": {ok}})
		s := &fitter{fitted: parsed(t, smaller)}
		g.Stages = []recovery.Stage{s}
		x := exchange(t, plainBody, "ab")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if g.asked() != "aa" || string(g.attempts[1].Body) != smaller || !g.attempts[1].Edited || s.fits != 1 || s.settled != 1 || s.committed != 1 {
			t.Errorf("asked %s with %s; %+v", g.asked(), g.attempts[len(g.attempts)-1].Body, s)
		}
		if g.observer.Count(recovery.EventCompressed) != 1 {
			t.Error("no event tells of it")
		}
	})
	bubble(t, func(t *testing.T) { // what cannot be made smaller moves to a larger window
		g := newRig(map[string][]step{"a": {overflow}, "b": {ok}})
		g.Stages = []recovery.Stage{&fitter{}}
		x := exchange(t, plainBody, "ab")
		x.Candidates[1].Window = 1_000_000
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if g.asked() != "ab" {
			t.Errorf("asked %s", g.asked())
		}
	})
	bubble(t, func(t *testing.T) { // a session with edits is rewritten before the first attempt; a refused edit goes back to the client's bytes
		g := newRig(map[string][]step{"a": {refuse(400, envelope("Invalid value: content")), ok}})
		g.Stages = []recovery.Stage{&fitter{known: parsed(t, smaller)}}
		x := exchange(t, plainBody, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if string(g.attempts[0].Body) != smaller || string(g.attempts[1].Body) != plainBody || g.attempts[1].Edited {
			t.Errorf("sent %s, then %s", g.attempts[0].Body, g.attempts[1].Body)
		}
	})
}

// flawedOtherwise is flawed for another reason.
func flawedOtherwise(problem string) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		held, f := flawed("")(g, ctx, a)
		f.Flaw.Problem = problem
		return held, f
	}
}

// flawed answers with something complete that cannot be used. shown is the
// text that the client has by then.
func flawed(shown string) step {
	return func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		held, _ := g.answer(context.WithoutCancel(ctx), a, &answer{}) // it is whole: its attempt has ended
		f := fail(a, recovery.Evidence{Phase: recovery.PhaseStream, Err: recovery.ErrFlawed})
		f.Flaw = &recovery.Flaw{Kind: recovery.FlawArguments, Tool: "ls", Quote: `{"path":`, Problem: "path is missing"}
		if shown != "" {
			f.Released, f.Sent = recovery.ReleasedText, shown
		}
		return held, f
	}
}

func TestReask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {flawed(""), ok}})
		x := exchange(t, agentBody, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		body := g.attempts[1].Body
		if !bytes.Contains(body, []byte("path is missing")) || !bytes.Contains(body, []byte(`"tool_choice":{"type":"function","function":{"name":"ls"}}`)) {
			t.Errorf("asked again with %s", body)
		}
		if !bytes.HasPrefix(body, []byte(agentBody[:strings.Index(agentBody, `],"tools"`)])) {
			t.Errorf("more than the tail changed: %s", body)
		}
		if _, _, beyond := x.Totals(); beyond.Input != 10 {
			t.Errorf("spent beyond the answer: %+v", beyond)
		}
		if g.answers[0].discarded != 1 || g.answers[1].delivered != 1 {
			t.Error("the wrong answer was delivered")
		}
	})
	bubble(t, func(t *testing.T) { // the same flaw twice is what this model writes: the first answer passes as it is
		g := newRig(map[string][]step{"a": {flawed("")}})
		x := exchange(t, agentBody, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if g.asked() != "aa" || g.answers[0].delivered != 1 || g.answers[1].discarded != 1 {
			t.Errorf("asked %s; first delivered %d times", g.asked(), g.answers[0].delivered)
		}
	})
	bubble(t, func(t *testing.T) { // another flaw is progress: the budget is two more inputs
		g := newRig(map[string][]step{"a": {flawed(""), flawedOtherwise("limit is no number"), flawedOtherwise("limit is negative"), ok}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		answered(t, f, err)
		if g.asked() != "aaa" || g.answers[0].delivered != 1 {
			t.Errorf("asked %s; first delivered %d times", g.asked(), g.answers[0].delivered)
		}
	})
	bubble(t, func(t *testing.T) { // who wrote it wrongly twice is not asked a third time while there is another
		g := newRig(map[string][]step{"a": {flawed("")}, "b": {ok}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "ab"))
		answered(t, f, err)
		if g.asked() != "aab" || g.answers[2].delivered != 1 || !bytes.Contains(g.attempts[2].Body, []byte("path is missing")) {
			t.Errorf("asked %s, at last with %s", g.asked(), g.attempts[2].Body)
		}
	})
	bubble(t, func(t *testing.T) { // and if that one does no better, the first answer passes
		g := newRig(map[string][]step{"a": {flawed("")}, "b": {flawed("")}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "ab"))
		answered(t, f, err)
		if g.asked() != "aab" || g.answers[0].delivered != 1 {
			t.Errorf("asked %s; first delivered %d times", g.asked(), g.answers[0].delivered)
		}
	})
	bubble(t, func(t *testing.T) { // an upstream that breaks meanwhile does not cost the first answer
		g := newRig(map[string][]step{"a": {flawed(""), reset}})
		g.Config.Attempts = 2
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		answered(t, f, err)
		if g.answers[0].delivered != 1 {
			t.Error("the flawed answer was lost")
		}
	})
	bubble(t, func(t *testing.T) { // after text only the calls are wanted
		g := newRig(map[string][]step{"a": {flawed("I will list."), ok}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		answered(t, f, err)
		if r := g.attempts[1].Resume; r == nil || !r.Calls || r.Sent != "I will list." || r.Way != "" {
			t.Errorf("resumed with %+v", r)
		}
	})
}

// A question for the calls alone that an outage refuses gives back its cost once, however often it is repeated.
func TestReaskCostsOnce(t *testing.T) {
	full := refuse(503, envelope("Service unavailable"))
	for name, script := range map[string][]step{
		"refused once":       {flawed("I will list."), full, ok},
		"refused repeatedly": {flawed("I will list."), full, full, full, ok},
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": script})
			x := exchange(t, agentBody, "a")
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if x.Extra() != 0 || len(x.Attempts) != len(script) {
				t.Errorf("%s: %d extra inputs in %d attempts, want 0 in %d", name, x.Extra(), len(x.Attempts), len(script))
			}
		})
	}
}

func TestExplain(t *testing.T) {
	odd := refuse(400, envelope("Invalid value: 'messages[2]' is odd"))
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {odd, ok}})
		x := exchange(t, agentBody, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if a := g.attempts[1]; !a.Explain || !bytes.Contains(a.Body, []byte(`"tool_choice":"none"`)) || !bytes.Contains(a.Body, []byte("is odd")) {
			t.Errorf("sent %s", a.Body)
		}
	})
	bubble(t, func(t *testing.T) { // the client sees the first refusal, not that of the explanation
		g := newRig(map[string][]step{"a": {odd, refuse(400, envelope("Invalid value: another"))}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		if err != nil || f == nil || !strings.Contains(string(f.Response.Body), "is odd") || g.asked() != "aa" {
			t.Errorf("%v, %v, asked %s", f, err, g.asked())
		}
	})
	for name, body := range map[string]string{
		"first turn":                          strings.Replace(agentBody, `"assistant"`, `"user"`, 1),
		"structured":                          strings.Replace(agentBody, `{"model"`, `{"response_format":{"type":"json_object"},"model"`, 1),
		"several":                             strings.Replace(agentBody, `{"model"`, `{"n":2,"model"`, 1),
		"no tools":                            strings.Replace(agentBody, `"tools"`, `"tool"`, 1),
		"an answer that the client has begun": strings.Replace(agentBody, `],"tools"`, `,{"role":"assistant","content":"{"}],"tools"`, 1),
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {odd}})
			f, err := g.run(t, t.Context(), exchange(t, body, "a"))
			if err != nil || f == nil || g.asked() != "a" {
				t.Errorf("%s: %v, asked %s", name, f, g.asked())
			}
		})
	}
}

// A note stands before the beginning of an answer that the client gives: the
// model goes on from that, and not from our words.
func TestNoteBeforeBeginning(t *testing.T) {
	begun := strings.Replace(agentBody, `],"tools"`, `,{"role":"assistant","content":"I see "}],"tools"`, 1)
	for name, c := range map[string]struct {
		script []step
		stages []recovery.Stage
		note   string
	}{
		"guidance": {[]step{ok}, []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Guidance = "try b" })}, "try b"},
		"re-ask":   {[]step{flawed(""), ok}, nil, "path is missing"},
	} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": c.script})
			g.Stages = c.stages
			f, err := g.run(t, t.Context(), exchange(t, begun, "a"))
			answered(t, f, err)
			list := parsed(t, string(g.attempts[len(g.attempts)-1].Body)).Messages()
			last, note := list[len(list)-1], list[len(list)-2]
			if string(last.Raw()) != `{"role":"assistant","content":"I see "}` || note.Role != transcript.RoleUser || !strings.Contains(note.Text(), c.note) {
				t.Errorf("%s: sent %s, then %s", name, note.Raw(), last.Raw())
			}
		})
	}
}

// From the second break of one request on, the model is told to take smaller steps.
func TestSmallerSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := refuse(504, envelope("upstream timed out"))
		g := newRig(map[string][]step{"a": {slow, slow, slow, slow, ok}})
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
		answered(t, f, err)
		var notes []bool
		for _, a := range g.attempts {
			notes = append(notes, bytes.Contains(a.Body, []byte("smaller step")))
		}
		if want := []bool{false, false, true, true, false}; !slices.Equal(notes, want) {
			t.Errorf("notes %v, want %v", notes, want)
		}
	})
}

// prepares is a stage that is a function.
type prepares func(x *recovery.Exchange)

func (s prepares) Prepare(_ context.Context, x *recovery.Exchange) error {
	s(x)
	return nil
}

func TestStages(t *testing.T) {
	bubble(t, func(t *testing.T) { // guidance goes into every attempt, at the tail
		g := newRig(map[string][]step{"a": {reset, ok}})
		g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Guidance = "try b" })}
		x := exchange(t, agentBody, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		if string(g.attempts[0].Body) != string(g.attempts[1].Body) || !bytes.Contains(g.attempts[0].Body, []byte(`,{"role":"user","content":"try b"}],"tools"`)) {
			t.Errorf("sent %s", g.attempts[0].Body)
		}
		if !slices.Contains(x.Actions(), "guidance") {
			t.Errorf("did %v", x.Actions())
		}
	})
	bubble(t, func(t *testing.T) { // the gateway's own answer costs no attempt
		g := newRig(nil)
		g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Reply = &recovery.Reply{Action: "breaker", Text: "stopped"} })}
		x := exchange(t, agentBody, "a")
		if f, err := g.run(t, t.Context(), x); f != nil || err != recovery.ErrReplied || len(x.Attempts) != 0 {
			t.Errorf("%v, %v", f, err)
		}
	})
}

// A model that writes what cannot be shown yet is not silent.
func TestHeldIsNotSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		writing := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
			time.Sleep(time.Second)
			a.Life.Show(recovery.SignWrites)
			return late(5*time.Minute, ok)(g, ctx, a)
		}
		g := newRig(map[string][]step{"a": {writing}, "b": {ok}})
		f, err := g.run(t, t.Context(), exchange(t, plainBody, "ab"))
		answered(t, f, err)
		if g.asked() != "a" {
			t.Errorf("asked %s", g.asked())
		}
	})
}

// Several edits of one request do not contradict one another.
func TestSeveralMends(t *testing.T) {
	b := parsed(t, `{"model":"m","tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string","pattern":"x","default":"y","format":"z"}}}}}],"messages":[{"role":"user","content":"x"}]}`)
	e := &recovery.Engine{Conformer: conform.Conformer{}}
	for _, l := range [][]recovery.Edit{
		{{Conform: recovery.ConformKeyword, Field: "pattern"}, {Conform: recovery.ConformKeyword, Field: "default"}},
		{{Conform: recovery.ConformStrict}, {Conform: recovery.ConformKeyword, Field: "default"}},
		{{Conform: recovery.ConformKeyword, Field: "default"}, {Conform: recovery.ConformPlain}},
	} {
		out, err := e.Edited(b, l)
		if err != nil || string(out) == string(b.Raw()) {
			t.Errorf("%v: %v, %s", l, err, out)
		}
	}
	h := parsed(t, `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"a-long-id-1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a-long-id-1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a-long-id-1","content":"1"},{"role":"user","content":"a"},{"role":"user","content":"b"}]}`)
	all := []recovery.Edit{{Conform: recovery.ConformPairing}, {Conform: recovery.ConformCallIDs}, {Conform: recovery.ConformSignatures}, {Conform: recovery.ConformAlternate},
		{Conform: recovery.ConformSystem}, {Conform: recovery.ConformEmpty}, {Conform: recovery.ConformTextOnly}, {Conform: recovery.ConformMedia}, {Conform: recovery.ConformStubTools}}
	for _, x := range all {
		for _, y := range all {
			if x == y {
				continue
			}
			if _, err := e.Edited(h, []recovery.Edit{x, y}); err != nil {
				t.Errorf("%s+%s: %v", x.Conform, y.Conform, err)
			}
		}
	}
}

// What did not help is not learned, nor what answers to one request's content.
func TestLearnsWhatHelped(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string","default":"y"}}}}}]}`
	bubble(t, func(t *testing.T) {
		no := refuse(400, envelope("Invalid schema for function 'f': strict mode: keyword 'default' is not permitted"))
		g := newRig(map[string][]step{"a": {no, no, ok}})
		g.Conformer = conform.Conformer{}
		x := exchange(t, body, "a")
		f, err := g.run(t, t.Context(), x)
		answered(t, f, err)
		want := []recovery.Edit{{Conform: recovery.ConformKeyword, Field: "default"}}
		if got := g.facts.Edits(x.Candidates[0].Target); !slices.Equal(got, want) {
			t.Errorf("learned %+v", got)
		}
	})
}

// Once edits are off they stay off, and the client hears what was said of its
// own bytes, not of ours.
func TestRefusedFitting(t *testing.T) {
	odd := refuse(400, envelope("This deployment takes no such marks"))
	for name, g := range map[string]*rig{
		"before": newRig(map[string][]step{"a": {odd, overflow}}),
		"after":  newRig(map[string][]step{"a": {overflow, odd}}),
	} {
		bubble(t, func(t *testing.T) {
			s := &fitter{fitted: parsed(t, smaller)}
			if name == "before" {
				s.known = s.fitted
			}
			g.Stages = []recovery.Stage{s}
			f, err := g.run(t, t.Context(), exchange(t, plainBody, "a"))
			if err != nil || f == nil || f.Class() != recovery.ContextLengthExceeded || g.asked() != "aa" {
				t.Errorf("%s: %v, %v, asked %s", name, f, err, g.asked())
			}
		})
	}
}

// Conforming edits work in their own order, whatever the order of their discovery.
func TestOrderOfMends(t *testing.T) {
	b := parsed(t, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]}`)
	e := &recovery.Engine{Conformer: conform.Conformer{}}
	out, err := e.Edited(b, []recovery.Edit{{Conform: recovery.ConformAlternate}, {Conform: recovery.ConformSystem}})
	if want := `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a\n\nb\n\nc"}]}`; err != nil || string(out) != want {
		t.Errorf("%v, %s", err, out)
	}
}

// A re-ask that met an outage is still a re-ask when it is tried again, and
// an explanation is asked for once.
func TestNotesSurviveOutages(t *testing.T) {
	busyNow := refuse(500, envelope("The server had an error"))
	bubble(t, func(t *testing.T) {
		g := newRig(map[string][]step{"a": {flawed(""), busyNow, ok}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		answered(t, f, err)
		if string(g.attempts[1].Body) != string(g.attempts[2].Body) || !bytes.Contains(g.attempts[2].Body, []byte("path is missing")) {
			t.Errorf("sent %s", g.attempts[2].Body)
		}
	})
	bubble(t, func(t *testing.T) {
		odd := refuse(400, envelope("Invalid value: 'messages[2]' is odd"))
		g := newRig(map[string][]step{"a": {odd, busyNow, odd}})
		f, err := g.run(t, t.Context(), exchange(t, agentBody, "a"))
		if err != nil || f == nil || f.Response.Status != 400 || g.asked() != "aaa" {
			t.Errorf("%v, %v, asked %s", f, err, g.asked())
		}
	})
}

// What was learned of a target is doubted only where it changed the request.
func TestForgetsOnlyWhatMattered(t *testing.T) {
	rename := recovery.Edit{Field: "max_tokens", Rename: "max_completion_tokens"}
	for body, forgotten := range map[string]bool{plainBody: false, `{"max_tokens":5,` + plainBody[1:]: true} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {refuse(400, envelope("Invalid value: odd")), ok}})
			g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Guidance = "try b" })}
			x := exchange(t, body, "a")
			g.facts.Learn(x.Candidates[0].Target, []recovery.Edit{rename}, "r1")
			f, err := g.run(t, t.Context(), x)
			answered(t, f, err)
			if got := len(g.facts.Edits(x.Candidates[0].Target)) == 0; got != forgotten {
				t.Errorf("%s: forgotten is %t", body, got)
			}
		})
	}
}

// TestClampAfterRename: a limit is lowered under the name that a target wants for it,
// whichever name it had when the target told the limit.
func TestClampAfterRename(t *testing.T) {
	e := &recovery.Engine{}
	b := recoverytest.Parse(t, `{"model":"m","max_tokens":40000,"messages":[]}`, transcript.Chat)
	rename := recovery.Edit{Field: "max_tokens", Rename: "max_completion_tokens"}
	for _, field := range []string{rename.Field, rename.Rename} {
		clamp := recovery.Edit{Field: field, Clamp: 900}
		for _, edits := range [][]recovery.Edit{{rename, clamp}, {clamp, rename}} {
			out, err := e.Edited(b, edits)
			if want := `{"model":"m","max_completion_tokens":900,"messages":[]}`; err != nil || string(out) != want {
				t.Errorf("%v: %s, %v, want %s", edits, out, err, want)
			}
		}
	}
}

// TestOdd: an answer that came to its end and cannot be read is asked for once more; then
// another target is, and else it passes as it is. It says nothing against the target.
func TestOdd(t *testing.T) {
	odd := func(g *rig, ctx context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		held, _ := g.answer(context.WithoutCancel(ctx), a, &answer{})
		f := fail(a, recovery.Evidence{Phase: recovery.PhaseBody, Status: 200, Err: errors.New("no JSON")})
		f.Odd = "no JSON"
		return held, f
	}
	for script, want := range map[string]string{"a": "aa", "ab": "aab"} {
		bubble(t, func(t *testing.T) {
			g := newRig(map[string][]step{"a": {odd}, "b": {ok}})
			f, err := g.run(t, t.Context(), exchange(t, plainBody, script))
			answered(t, f, err)
			if g.asked() != want || g.answers[0].delivered == 1 != (script == "a") {
				t.Errorf("asked %s", g.asked())
			}
			for _, p := range g.health.places {
				for _, o := range p.outcomes {
					if o.Failure != nil {
						t.Errorf("%v counts against its target", o.Failure)
					}
				}
			}
		})
	}
}
