package recovery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestHeeded is what is done with a request that leaves something to the memory of a
// server: who is asked after a failure, and with a note or without.
func TestHeeded(t *testing.T) {
	const text = "This is the beginning of an answer"
	said := `"input":[{"role":"user","content":"hi"}]`
	for _, c := range []struct {
		name  string
		body  string // besides the model
		a, b  []step
		set   func(x *recovery.Exchange)
		note  string // of the stages
		asked string
		notes int // attempts that carried the note
	}{
		{name: "all in itself", body: `"store":false,` + said, a: []step{busy}, b: []step{ok}, note: "try b", asked: "aab", notes: 3},
		{name: "a chain stays, without notes", body: `"previous_response_id":"resp_1",` + said, a: []step{busy, busy, ok}, b: []step{ok}, note: "try b", asked: "aaa"},
		{name: "a chain whose account is known", body: `"previous_response_id":"resp_1",` + said, a: []step{ok}, b: []step{busy, ok}, asked: "bb",
			set: func(x *recovery.Exchange) { x.Home = recovery.Target{Upstream: "b", Key: "k"} }},
		{name: "another key of that upstream is another account", body: `"previous_response_id":"resp_1",` + said, a: []step{ok}, b: []step{busy, ok}, asked: "bb",
			set: func(x *recovery.Exchange) {
				x.Candidates[0].Upstream, x.Candidates[0].Key = "b", "other"
				x.Home = recovery.Target{Upstream: "b", Key: "k"}
			}},
		{name: "what must stay", body: `"store":false,` + said, a: []step{busy, busy, ok}, b: []step{ok}, asked: "aaa", set: func(x *recovery.Exchange) { x.Stays = true }},
		{name: "an answer that is kept is not continued by another", body: said, a: []step{cut(recovery.ReleasedText, text), ok}, b: []step{ok}, asked: "a"},
		{name: "unless what it was is kept", body: said, a: []step{cut(recovery.ReleasedText, text), ok}, b: []step{ok}, asked: "aa", set: func(x *recovery.Exchange) { x.Keeps = true }},
		{name: "a chain, too, where it is", body: `"previous_response_id":"resp_1",` + said, a: []step{cut(recovery.ReleasedText, text), ok}, b: []step{ok}, asked: "aa", set: func(x *recovery.Exchange) { x.Keeps = true }},
		{name: "never a conversation", body: `"conversation":"conv_1",` + said, a: []step{cut(recovery.ReleasedText, text), ok}, b: []step{ok}, asked: "a", set: func(x *recovery.Exchange) { x.Keeps = true }},
		{name: "one that is not kept is", body: `"store":false,` + said, a: []step{cut(recovery.ReleasedText, text), ok}, b: []step{ok}, asked: "aa"},
		{name: "nothing beside a job", body: `"background":true,` + said, a: []step{late(25*time.Second, ok)}, b: []step{ok}, asked: "a"},
		{name: "one beside another that is silent", body: `"store":false,` + said, a: []step{late(25*time.Second, ok)}, b: []step{ok}, asked: "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a, "b": c.b})
				if c.note != "" {
					g.Stages = []recovery.Stage{prepares(func(x *recovery.Exchange) { x.Guidance = c.note })}
				}
				b := recoverytest.Parse(t, `{"model":"m",`+c.body+`}`, transcript.Responses)
				x := exchange(t, plainBody, "ab")
				x.Body = b
				if c.set != nil {
					c.set(x)
				}
				_, err := g.run(t, t.Context(), x)
				if err != nil || g.asked() != c.asked {
					t.Errorf("asked %s, want %s: %v", g.asked(), c.asked, err)
				}
				notes := 0
				for _, a := range g.attempts {
					if c.note != "" && strings.Contains(string(a.Body), c.note) {
						notes++
					}
				}
				if notes != c.notes {
					t.Errorf("%d attempts carried the note, want %d", notes, c.notes)
				}
			})
		})
	}
}

// TestFetched: a server that was to keep an answer is asked once for it, which costs nothing and says
// nothing of its target; then the answer is continued where that may be.
func TestFetched(t *testing.T) {
	const text = "This is the beginning of an answer"
	stored := &recovery.Job{ID: "resp_1", Stored: true}
	breaks := gives(func() *answer { return &answer{released: recovery.ReleasedText, sent: text, breaks: true, job: stored} })
	pauses := func(d time.Duration) step {
		return gives(func() *answer { return &answer{released: recovery.ReleasedText, sent: text, pause: d, job: stored} })
	}
	gone, forbidden := behind(text, refuse(404, envelope("Response with id 'resp_1' not found."))), behind(text, refuse(401, envelope("Missing scopes: api.responses.read")))
	busy := behind(text, refuse(429, envelope("Rate limit reached, try again in 9m")))
	working := func(_ *rig, _ context.Context, a recovery.Attempt) (recovery.Answer, *recovery.Failure) {
		f := fail(a, recovery.Evidence{Phase: recovery.PhaseHeaders, Err: context.DeadlineExceeded})
		f.Released, f.Sent = recovery.ReleasedText, text
		return nil, f
	}
	for _, c := range []struct {
		name    string
		a       []step
		keeps   bool
		ways    string
		failed  bool
		refused int // continuations of a paused answer
	}{
		{name: "it has it", a: []step{breaks, ok}, ways: " fetch"},
		{name: "it has not, and nobody keeps it", a: []step{breaks, gone}, ways: " fetch", failed: true},
		{name: "it has not", a: []step{breaks, gone, ok}, keeps: true, ways: " fetch ask"},
		{name: "it does not tell", a: []step{breaks, forbidden, ok}, keeps: true, ways: " fetch ask"},
		{name: "it has no time", a: []step{breaks, busy, ok}, keeps: true, ways: " fetch ask"},
		{name: "in a pause", a: []step{pauses(time.Hour), ok}, ways: " fetch"},
		{name: "in a pause, not", a: []step{pauses(time.Hour), gone, ok}, keeps: true, ways: " fetch ask"},
		{name: "in a pause, neither", a: []step{pauses(time.Minute), gone, gone, gone}, keeps: true, ways: " fetch ask", refused: 1},
		{name: "in a pause, and nobody keeps it", a: []step{pauses(time.Minute), gone}, ways: " fetch", refused: 1},
		{name: "in a pause, while it works on it", a: []step{pauses(time.Minute), working}, ways: " fetch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": c.a})
				g.Config.Continue = []recovery.Way{recovery.WayAsk}
				b := recoverytest.Parse(t, `{"model":"m","stream":true,"input":"hi"}`, transcript.Responses)
				x := exchange(t, plainBody, "a")
				x.Body, x.Keeps = b, c.keeps
				f, err := g.run(t, t.Context(), x)
				ways := ""
				for _, a := range g.attempts {
					if a.Resume != nil {
						ways += " " + string(a.Resume.Way)
					}
				}
				if err != nil || (f != nil) != c.failed || ways != c.ways || g.answers[0].refused != c.refused {
					t.Errorf("%v, %v, asked by%s, %d refused", f, err, ways, g.answers[0].refused)
				}
				if extra := strings.Count(ways, "ask") - c.refused; x.Candidates[0].Unusable() || x.Candidates[0].Tries != 1+strings.Count(ways, "ask") || x.Extra() != max(0, extra) {
					t.Errorf("%+v, extra %d", x.Candidates[0], x.Extra())
				}
				if o := g.health.places[1].outcomes[0]; o.Failure != nil {
					t.Errorf("it says of its target %+v", o)
				}
			})
		})
	}
}

// TestAllowed is what is done of an action whose note a server would remember.
func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		name   string
		action recovery.Action
		asked  string
	}{
		{"a note about a failure is left away", recovery.Action{Note: "smaller"}, "aa"},
		{"no note", recovery.Action{}, "aa"},
		{"a question is nothing without it", recovery.Action{Note: "again", Reask: true}, "a"},
		{"an explanation is nothing without it", recovery.Action{Note: "say why", Explain: true}, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := newRig(map[string][]step{"a": {busy, ok}})
				g.Strategies = always(c.action)
				b := recoverytest.Parse(t, `{"model":"m","previous_response_id":"resp_1","input":"hi"}`, transcript.Responses)
				x := exchange(t, plainBody, "a")
				x.Body = b
				_, err := g.run(t, t.Context(), x)
				if err != nil || g.asked() != c.asked {
					t.Errorf("asked %s, want %s: %v", g.asked(), c.asked, err)
				}
				if last := g.attempts[len(g.attempts)-1]; string(last.Body) != string(b.Raw()) {
					t.Errorf("sent %s", last.Body)
				}
			})
		})
	}
}
