package fit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
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

// What the client puts beside results goes with old turns, before the user's own messages do.
func TestRemindersGoFirst(t *testing.T) {
	raw := `{"model":"gpt-4o","max_tokens":2000,"messages":[{"role":"user","content":"Mend it. Never touch vendor."}`
	for i := range 60 {
		note := fmt.Sprintf("<system-reminder>\nNote: f%d.go was modified. Here is the result:\n%s</system-reminder>", i, lines(20, fmt.Sprintf("%d→x := f(%d)", i, i)))
		raw += fmt.Sprintf(`,{"role":"assistant","content":[{"type":"tool_use","id":"t%[1]d","name":"Edit","input":{"file_path":"f%[1]d.go"}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%[1]d","content":"edited"},{"type":"text","text":%[2]s}]}`, i, transcript.String(note))
		if i%20 == 10 {
			raw += fmt.Sprintf(`,{"role":"assistant","content":"Done."},{"role":"user","content":"Now part %d: keep the interface."}`, i)
		}
	}
	b := recoverytest.Parse(t, raw+"]}", transcript.Messages)
	f := newTestFitter(t, Defaults(), nil)
	for _, share := range []float64{0.8, 0.3} {
		_, out := fitOnce(t, f, b, int(share*float64(f.parts.Meter.Measure(b, "gpt-4o").Total)), "", nil)
		if out == nil {
			t.Fatalf("not fitted to %.1f", share)
		}
		after := string(out.Body.Raw())
		if n := strings.Count(after, `"Now part `); n != 3 || !strings.Contains(after, "Note: f59.go") {
			t.Errorf("%.1f: %d messages of the user and %d reminders are left", share, n, strings.Count(after, "<system-reminder>"))
		}
	}
}

// So does what the client puts into a user's message of its own, as routers do that send Claude Code's requests to a Chat API
// (github.com/musistudio/claude-code-router).
func TestReminderMessagesGoFirst(t *testing.T) {
	const said = "Now the second part: keep the interface as it is, and write to out/b.txt"
	s := newScript()
	for i := range 40 {
		s.call("bash", fmt.Sprintf(`{"command":"make part%d"}`, i), lines(20, fmt.Sprintf("made %d", i)))
		if i == 12 {
			s.say("assistant", "Done.").say("user", said)
		} else {
			s.say("user", fmt.Sprintf("<system-reminder>\nNote: f%d.go was modified. Here is the result:\n%s</system-reminder>", i, lines(20, fmt.Sprintf("%d x", i))))
		}
	}
	b := s.body(t)
	f := newTestFitter(t, Defaults(), nil)
	total := f.parts.Meter.Measure(b, "gpt-4o").Total
	for _, share := range []float64{0.8, 0.5, 0.3, 0.2} {
		_, out := fitOnce(t, f, b, int(share*float64(total)), "", nil)
		if out == nil {
			t.Fatalf("not fitted to %.1f", share)
		}
		if after := string(out.Body.Raw()); !strings.Contains(after, `{"role":"user","content":"`+said+`"}`) {
			t.Errorf("%.1f: the user's words gave way to %d reminders", share, strings.Count(after, "<system-reminder>"))
		}
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
