package recovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
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
				b, err := transcript.Parse([]byte(`{"model":"m",`+c.body+`}`), transcript.Responses, transcript.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				x := exchange(t, plainBody, "ab")
				x.Body = b
				if c.set != nil {
					c.set(x)
				}
				_, err = g.run(t, t.Context(), x)
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
				b, err := transcript.Parse([]byte(`{"model":"m","previous_response_id":"resp_1","input":"hi"}`), transcript.Responses, transcript.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				x := exchange(t, plainBody, "a")
				x.Body = b
				_, err = g.run(t, t.Context(), x)
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
