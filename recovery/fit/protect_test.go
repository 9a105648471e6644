package fit

import (
	"fmt"
	"strings"
	"testing"
)

func TestProtected(t *testing.T) {
	s := newScript()
	bad := s.call("bash", `{"command":"npm test"}`, "FAIL a\nError: 3 of 9 failed\nCommand exited with code 1")
	mended := s.call("bash", `{"command":"go build ./..."}`, "x.go:1: error\nCommand exited with code 1")
	s.call("bash", `{"command":"go build ./... && true"}`, "ok")
	s.say("user", "Use tabs only.")
	asked := s.n - 1
	s.raw(`{"role":"assistant","content":"thought of it","reasoning_content":"hmm, well"}`)
	thought := s.n - 1
	s.say("user", strings.Repeat("a pasted log ", 2000))
	pasted := s.n - 1
	s.say("assistant", "I see.")
	s.say("user", "Go on.")
	s.say("assistant", "Yes.")
	s.say("user", "Go on.")
	s.say("assistant", "Which database? A: SQLite. B: PostgreSQL.")
	question := s.n - 1
	s.say("user", "B")
	s.say("assistant", "It is set up.")
	s.say("system", "A reminder.")
	reminder := s.n - 1
	old := s.call("bash", `{"command":"ls"}`, lines(20, "x"))
	for range 6 {
		s.call("bash", `{"command":"date"}`, strings.Repeat("some words here ", 100))
	}
	v := s.history(t)
	k := newRevision(v, newMeter(), "gpt-4o")
	p := protect(v, k.tokens, 4000, 0.25)
	for i, want := range map[int]protectReason{
		0: protectLead | protectSystem, 1: protectLead, bad: protectError, bad - 1: protectError, mended: 0,
		asked: protectUser, thought: protectReasoning, pasted: 0, reminder: protectSystem, old: 0,
		question - 1: protectUser, question - 2: 0, question: protectUser, question + 1: protectUser, len(v.items) - 1: protectRecent,
	} {
		if p.reasons[i] != want {
			t.Errorf("message %d: %b, want %b: %.80s", i, p.reasons[i], want, v.items[i].Raw())
		}
	}
	recent := 0
	for i := p.recent; i < len(v.items); i++ {
		recent += k.tokens[i]
	}
	if recent < 1000 || recent > 2000 || !v.boundary(p.recent) {
		t.Errorf("%d recent tokens from message %d on", recent, p.recent)
	}
}

// The last answer and its results stay, whatever their size.
func TestLastStepIsProtected(t *testing.T) {
	s := newScript()
	s.call("bash", `{"command":"ls"}`, "a")
	last := s.call("bash", `{"command":"cat x"}`, lines(2000, "x"))
	s.say("user", "And now?")
	v := s.history(t)
	k := newRevision(v, newMeter(), "gpt-4o")
	p := protect(v, k.tokens, 1000, 0.25)
	if p.recent != last-1 {
		t.Errorf("the recent turns begin at %d, want %d", p.recent, last-1)
	}
}

// If nothing else suffices, a digest replaces even the user's messages in the middle.
func TestUserMessagesGoLast(t *testing.T) {
	s := newScript()
	s.call("bash", `{"command":"ls"}`, "a.go")
	story := ""
	for i := range 70 {
		story += fmt.Sprintf("On day %d we went to the market and bought %d of the finest apples. ", i, i*7%90)
	}
	s.say("user", story+"Never sell the apples.")
	for i := range 6 {
		s.call("bash", fmt.Sprintf(`{"command":"make part%d"}`, i), lines(4, "made"))
	}
	out, r, ok := Compress(Defaults(), s.body(t), newMeter(), "gpt-4o", 1400, 200)
	if !ok || !strings.Contains(digestIn(out), "Never sell the apples.") {
		t.Errorf("fitted: %v, %+v", ok, r)
	}
}

// A user's messages after an assistant's code blocks are not results of a text protocol.
func TestUserMessagesAreNotResults(t *testing.T) {
	chat, agent := &script{}, &script{}
	chat.say("system", "You are a helpful assistant.").say("user", "Write a sorter.")
	agent.say("system", "You act with one COMMAND in a fenced block at the end.").say("user", "Mend it.")
	for range 5 {
		for _, s := range []*script{chat, agent} {
			s.say("assistant", "So:\n```\ncat x.go\n```")
			s.say("user", lines(300, "what follows"))
		}
	}
	if v := chat.history(t); v.textProtocol || v.items[3].result {
		t.Error("a person's words are taken for a result")
	}
	if v := agent.history(t); !v.textProtocol || !v.items[3].result || len(v.items[3].call.files) != 1 {
		t.Error("an observation is taken for a person's words")
	}
	agent.tools = `[{"type":"function","function":{"name":"bash"}}]`
	if v := agent.history(t); v.textProtocol {
		t.Error("an agent with tools is taken for a text protocol")
	}
}
