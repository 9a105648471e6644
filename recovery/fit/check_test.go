package fit

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func TestCheck(t *testing.T) {
	s := newScript()
	s.call("bash", `{"command":"ls"}`, lines(100, "x"))
	s.call("bash", `{"command":"make"}`, lines(100, "y"))
	s.say("user", "Go on.")
	b := s.body(t)
	for name, c := range map[string]struct {
		edit func(e *transcript.Editor)
		want error
	}{
		"shorter result":  {func(e *transcript.Editor) { e.SetText(3, "x", false) }, nil},
		"a step goes":     {func(e *transcript.Editor) { e.RemoveMessage(2).RemoveMessage(3) }, nil},
		"longer":          {func(e *transcript.Editor) { e.SetText(3, lines(200, "x"), false) }, errNotSmaller},
		"nothing":         {func(e *transcript.Editor) {}, errNotSmaller},
		"a result goes":   {func(e *transcript.Editor) { e.RemoveMessage(3) }, errPairing},
		"a call goes":     {func(e *transcript.Editor) { e.RemoveMessage(4) }, errPairing},
		"an empty answer": {func(e *transcript.Editor) { e.SetText(5, "", false) }, errEmpty},
		"broken arguments": {func(e *transcript.Editor) {
			e.SetText(3, "x", false).Replace(b.Messages()[2].ToolCalls()[0].Span, []byte(`"{"`))
		}, errArguments},
		"the task changes":  {func(e *transcript.Editor) { e.SetText(1, "Do.", false) }, errProtected},
		"a field goes":      {func(e *transcript.Editor) { e.SetText(3, "x", false).Delete("model") }, errProtected},
		"the system goes":   {func(e *transcript.Editor) { e.RemoveMessage(0) }, errProtected},
		"a result at first": {func(e *transcript.Editor) { e.RemoveMessage(0).RemoveMessage(1).RemoveMessage(2) }, errPairing},
		"an answer in midst": {func(e *transcript.Editor) {
			e.SetText(3, "x", false).InsertMessage(3, []byte(`{"role":"assistant","content":"y"}`))
		}, errPairing},
	} {
		e := b.Edit()
		c.edit(e)
		after, err := e.Body()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := check(b, after, newParseCache()); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCompressHopeless(t *testing.T) {
	huge := newScript()
	huge.call("bash", `{"command":"ls"}`, "x")
	huge.say("system", strings.Repeat("rules of the house ", 5000))
	fixed := newScript()
	fixed.tools = `[{"type":"function","function":{"name":"bash","description":"` + strings.Repeat("words ", 5000) + `"}}]`
	fixed.call("bash", `{"command":"ls"}`, lines(3000, "x"))
	for name, s := range map[string]*script{"the rules": huge, "the tools": fixed} {
		b := s.body(t)
		out, r, ok := Compress(Defaults(), b, newMeter(), "gpt-4o", 4000, 500)
		if ok || out != b || r.TokensAfter != r.TokensBefore {
			t.Errorf("%s: fitted to %+v", name, r)
		}
	}
}

// A single enormous result is cut even if it is the newest.
func TestCompressNewestResult(t *testing.T) {
	s := newScript()
	s.call("bash", `{"command":"ls"}`, "x")
	s.call("bash", `{"command":"cat huge.log"}`, lines(20_000, "log"))
	b := s.body(t)
	out, r, ok := Compress(Defaults(), b, newMeter(), "gpt-4o", 16_000, 1000)
	if !ok || r.TokensAfter > 9000 || r.Steps != 1 {
		t.Fatalf("%+v", r)
	}
	if got := out.Messages()[5].Text(); !strings.Contains(got, "log line 0") || !strings.Contains(got, "log line 19999") || len(got) < 4000 {
		t.Errorf("%d bytes are left: %.300s", len(got), got)
	}
}

// Messages with reasoning stay unchanged, or go as a whole.
func TestCompressKeepsReasoning(t *testing.T) {
	s := newScript()
	var thoughts []string
	for range 20 {
		id := "c" + strings.Repeat("i", s.n)
		m := `{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"` + strings.Repeat("Zm9v", 40) + `"}],` +
			`"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"write","arguments":` + string(transcript.String(`{"path":"a","content":"`+strings.Repeat("x y z ", 400)+`"}`)) + `}}]}`
		thoughts = append(thoughts, m)
		s.raw(m)
		s.raw(`{"role":"tool","tool_call_id":"` + id + `","content":` + string(transcript.String(lines(300, "out"))) + `}`)
	}
	b := s.body(t)
	out, r, ok := Compress(Defaults(), b, newMeter(), "gpt-4o", 30_000, 1000)
	if !ok || r.Steps == 0 {
		t.Fatalf("%+v", r)
	}
	there := 0
	for _, m := range thoughts {
		if strings.Contains(string(out.Raw()), m) {
			there++
		}
	}
	if n := strings.Count(string(out.Raw()), "reasoning_details"); n != there || n == 0 {
		t.Errorf("of %d messages with reasoning %d are as they were", n, there)
	}
}

// quarterCounter counts four bytes as one token, which is fast enough for fuzzing.
type quarterCounter struct{}

func (quarterCounter) Text(_, s string) int { return (len(s) + 3) / 4 }

func (q quarterCounter) Measure(b *transcript.Body, _ string) (c count.Counts) {
	for _, m := range b.Messages() {
		n := q.Text("", string(m.Raw()))
		c.Messages = append(c.Messages, n)
		c.Total += n
	}
	return c
}

func FuzzFit(f *testing.F) {
	s := newScript()
	s.call("read", `{"path":"a.go"}`, lines(60, "a"))
	s.call("edit", `{"path":"a.go","old":"`+strings.Repeat("o", 700)+`","new":"`+strings.Repeat("n", 700)+`"}`, "done")
	s.call("read", `{"path":"a.go"}`, lines(60, "a"))
	s.say("user", "Go on.")
	s.call("bash", `{"command":"make"}`, lines(20, "x"))
	f.Add(`{"messages":[`+s.b.String()+`]}`, uint16(900))
	f.Add(`{"messages":[{"role":"tool","content":"`+strings.Repeat("x ", 3000)+`"},{"role":"assistant"},{},{"role":"user","content":[{"type":"text","text":"a"},"b",{}]},1,null]}`, uint16(300))
	f.Add("{\"messages\":[{\"role\":\"user\",\"content\":\"t\"},{\"role\":\"assistant\",\"content\":\"```\\nls\\n"+
		"```\"},{\"role\":\"user\",\"content\":\""+strings.Repeat("out ", 1500)+"\"},{\"role\":\"assistant\",\"content\":\"```\\npwd\\n```\"},{\"role\":\"user\",\"content\":\"/\"}]}", uint16(400))
	f.Add(`{"messages":[{"role":"user","content":"u"},{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","na`+
		`me":"f","content":"`+strings.Repeat("y ", 2500)+`"},{"role":"assistant","content":"z"}]}`, uint16(300))
	m := quarterCounter{}
	cfg := Defaults()
	f.Fuzz(func(t *testing.T, raw string, limit uint16) {
		b, err := transcript.Parse([]byte(raw), transcript.Chat, transcript.Limits{})
		if err != nil {
			return
		}
		out, r, ok := Compress(cfg, b, m, "gpt-4o", int(limit), 50)
		if !ok || out == b {
			if out != b {
				t.Fatal("a failed fitting returns something else than the original")
			}
			return
		}
		if err := check(b, out, newParseCache()); err != nil {
			t.Fatal(err)
		}
		if r.TokensAfter >= int(limit)-50 || r.TokensAfter >= r.TokensBefore || r.Steps == 0 {
			t.Fatalf("%+v for a limit of %d", r, limit)
		}
		again, _, ok := Compress(cfg, out, m, "gpt-4o", int(limit), 50)
		if !ok || again != out {
			t.Fatal("what was fitted is fitted again")
		}
	})
}
