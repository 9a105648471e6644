package annotate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func failing() *talk {
	return agent(bash, read).run("pytest -q", "/bin/bash: line 1: pytest: command not found\n\nCommand exited with code 127")
}

func TestPrepare(t *testing.T) {
	open := &recovery.Reply{Text: "stopped"}
	for _, c := range []struct {
		name          string
		change        func(*recovery.Exchange)
		config        func(*annotate.Config)
		note          bool
		event         bool
		observed, out bool
	}{
		{name: "act", note: true, event: true},
		{name: "annotate", change: func(x *recovery.Exchange) { x.Mode = recovery.ModeAnnotate }, note: true, event: true},
		{name: "observe", change: func(x *recovery.Exchange) { x.Mode = recovery.ModeObserve }, event: true, observed: true},
		{name: "off", change: func(x *recovery.Exchange) { x.Mode = recovery.ModeOff }},
		{name: "held out", config: func(c *annotate.Config) { c.Holdout = 1 }, event: true, out: true},
		{name: "without a session nobody is held out", change: func(x *recovery.Exchange) { x.Session = "" }, config: func(c *annotate.Config) { c.Holdout = 1 }, note: true, event: true},
		{name: "stopped", change: func(x *recovery.Exchange) { x.Reply = open }},
		{name: "side request", change: func(x *recovery.Exchange) { x.Side = func() bool { return true } }},
		{name: "not a side request", change: func(x *recovery.Exchange) { x.Side = func() bool { return false } }, note: true, event: true},
		{name: "success", change: func(x *recovery.Exchange) { x.Results[0].Failed, x.Results[0].Category = false, recovery.CategoryNone }},
		{name: "another failure", change: func(x *recovery.Exchange) { x.Results[0].Category = recovery.CategoryNone }},
		{name: "not certain enough", change: func(x *recovery.Exchange) { x.Results[0].Confidence = 0.89 }},
		{name: "certain enough for this operator", change: func(x *recovery.Exchange) { x.Results[0].Confidence = 0.89 }, config: func(c *annotate.Config) { c.Confidence = 0.8 }, note: true, event: true},
		{name: "nothing", change: func(x *recovery.Exchange) { x.Results = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, o := stage(t, c.config)
			x := failing().exchange(t)
			if c.change != nil {
				c.change(x)
			}
			if err := s.Prepare(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if (x.Guidance != "") != c.note {
				t.Errorf("the guidance is %q", x.Guidance)
			}
			if len(o.Events()) > 1 || (len(o.Events()) == 1) != c.event {
				t.Fatalf("the events are %+v", o.Events())
			}
			if !c.event {
				return
			}
			ev := o.Events()[0]
			want := recovery.Advice{Category: recovery.CommandNotFound, Strategies: []string{"alternative_command", "ask_user"}, Count: 1, HeldOut: c.out}
			if ev.Name != recovery.EventGuidance || ev.Observed != c.observed || fmt.Sprint(*ev.Advice) != fmt.Sprint(want) || ev.Session != x.Session || ev.Request != x.ID {
				t.Errorf("the event is %+v, the advice %+v", ev, *ev.Advice)
			}
		})
	}
}

func TestGuidanceOfOthersStays(t *testing.T) {
	s, o := stage(t, nil)
	x := failing().exchange(t)
	x.Guidance = "stop"
	if err := s.Prepare(t.Context(), x); err != nil || x.Guidance != "stop" || len(o.Events()) != 0 {
		t.Errorf("guidance %q, events %+v, %v", x.Guidance, o.Events(), err)
	}
}

// TestForbiddenCalls: where the client wants no call, nobody says to use tools.
func TestForbiddenCalls(t *testing.T) {
	s, _ := stage(t, nil)
	raw := strings.Replace(string(failing().bytes()), `{"messages"`, `{"tool_choice":"none","messages"`, 1)
	if note, _ := s.Note(exchange(t, []byte(raw))); note != "" {
		t.Errorf("a note:\n%s", note)
	}
}

// TestHoldout: the share is right, a session stays on its side, and a larger
// share holds out all that a smaller one did.
func TestHoldout(t *testing.T) {
	tenth, _ := stage(t, func(c *annotate.Config) { c.Holdout = 0.1 })
	third, _ := stage(t, func(c *annotate.Config) { c.Holdout = 0.3 })
	none, _ := stage(t, nil)
	n := 0
	for i := range 20_000 {
		id := fmt.Sprintf("session-%d", i)
		out := tenth.HeldOut(id)
		if out {
			n++
		}
		if out && !third.HeldOut(id) || none.HeldOut(id) || out != tenth.HeldOut(id) {
			t.Fatalf("%s changes sides", id)
		}
	}
	if n < 1850 || n > 2150 {
		t.Errorf("%d of 20000 are held out, want about 2000", n)
	}
}

func strategies(t *testing.T, s *annotate.Stage, x *recovery.Exchange) []string {
	t.Helper()
	note, a := s.Note(x)
	wellFormed(t, note)
	return a.Strategies
}

// TestRotation: what stood first at one occurrence is not proposed at later
// ones, and at the end only the person is left.
func TestRotation(t *testing.T) {
	for _, category := range recovery.Categories() {
		s, _ := stage(t, nil)
		x := failing().exchange(t)
		x.Results[0].Category = category
		tried := map[string]bool{}
		for n := 1; n <= 6; n++ {
			x.Turn.Seen, x.Turn.Streak = n, 1
			got := strategies(t, s, x)
			if len(got) == 0 || len(got) > 2 || got[len(got)-1] != annotate.AskUser {
				t.Fatalf("%s, occurrence %d: %v", category, n, got)
			}
			for _, name := range got {
				if tried[name] {
					t.Errorf("%s, occurrence %d: %s was tried before", category, n, name)
				}
			}
			if got[0] != annotate.AskUser {
				tried[got[0]] = true
			}
			note, a := s.Note(x)
			if a.Count != n || n > 1 && !strings.Contains(note, fmt.Sprintf("%d times", n)) {
				t.Errorf("%s, occurrence %d: count %d\n%s", category, n, a.Count, note)
			}
			if n == 6 {
				if len(got) != 1 || strings.Contains(note, "\n1. ") || !strings.Contains(note, "ask the user to") {
					t.Errorf("%s: not only the person is left: %v\n%s", category, got, note)
				}
			}
		}
		// The ring in the store may know more than the history, and the other way around.
		x.Turn.Seen, x.Turn.Streak = 1, 1
		once := strategies(t, s, x)[0]
		x.Turn.Streak = 2
		if again := strategies(t, s, x)[0]; again == once && once != annotate.AskUser {
			t.Errorf("%s: the streak does not count: %s again", category, again)
		}
	}
}

// TestMixedTurn: another call of the turn succeeded, so that the turn has no
// failure; the history itself shows that this one happened before.
func TestMixedTurn(t *testing.T) {
	const out = "curl: (6) Could not resolve host: api.nohost.invalid\n\nCommand exited with code 6"
	s, _ := stage(t, nil)
	x := agent(bash).run("curl -sS https://api.nohost.invalid/v1", out).exchange(t)
	x.Turn = recovery.Turn{}
	one := strategies(t, s, x)
	x = agent(bash).run("curl -sS https://api.nohost.invalid/v1", out).run("ls", "a\n").run("curl -sS https://api.nohost.invalid/v1", out).exchange(t)
	x.Turn = recovery.Turn{}
	two := strategies(t, s, x)
	if one[0] != "retry_with_backoff" || slices.Contains(two, one[0]) {
		t.Errorf("first %v, then %v", one, two)
	}
}

func TestToolsDecide(t *testing.T) {
	const out = "cat: a/b.txt: No such file or directory\n\nCommand exited with code 1"
	weather := tool("get_weather", "The weather of a city.", "*city", "string")
	for _, c := range []struct {
		name string
		talk *talk
		want string
	}{
		{"shell", agent(bash).run("cat a/b.txt", out), "[verify_path ask_user]"},
		{"reading only", agent(read).call("read", object{"path": "a/b.txt"}, "Error: ENOENT: no such file or directory, open 'a/b.txt'"), "[verify_path ask_user]"},
		{"neither", agent(weather).call("read_file", object{"path": "a/b.txt"}, "Error: ENOENT: no such file or directory, open 'a/b.txt'"), "[ask_user]"},
	} {
		s, _ := stage(t, nil)
		if got := fmt.Sprint(strategies(t, s, c.talk.exchange(t))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// The next step needs a tool that writes.
	s, _ := stage(t, nil)
	x := agent(bash).run("cat a/b.txt", out).exchange(t)
	x.Turn.Seen = 2
	if got := fmt.Sprint(strategies(t, s, x)); got != "[create_if_appropriate ask_user]" {
		t.Errorf("the second time: %s", got)
	}
	// Only what the model may call counts.
	raw := strings.Replace(string(agent(bash, weather).call("bash", object{"command": "cat a/b.txt"}, out).bytes()), `{"messages"`,
		`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","name":"get_weather"}]}},"messages"`, 1)
	if got := fmt.Sprint(strategies(t, s, exchange(t, []byte(raw)))); got != "[ask_user]" {
		t.Errorf("tools that are not allowed: %s", got)
	}
}

func TestAskingTool(t *testing.T) {
	s, _ := stage(t, nil)
	note, _ := s.Note(agent(bash, ask).run("pytest", "/bin/bash: line 1: pytest: command not found\n").exchange(t))
	if !strings.Contains(note, "ask the user with `ask_user`.") {
		t.Errorf("the tool is not named:\n%s", note)
	}
	x := failing().exchange(t)
	x.Turn.Seen = 2
	note, _ = s.Note(x)
	if !strings.Contains(note, "ask the user to install `pytest`") {
		t.Errorf("the answer is not named:\n%s", note)
	}
}

func TestRiskyAndForbidden(t *testing.T) {
	x := failing().exchange(t)
	for _, c := range []struct {
		change func(*annotate.Config)
		want   string
	}{
		{nil, "[alternative_command ask_user]"},
		{func(c *annotate.Config) { c.Risky = true }, "[alternative_command ask_user]"},
		{func(c *annotate.Config) { c.Risky, c.Forbid = true, []string{"alternative_command"} }, "[manual_installation ask_user]"},
		{func(c *annotate.Config) { c.Forbid = []string{"alternative_command"} }, "[ask_user]"},
		{func(c *annotate.Config) {
			c.Chains = map[string][]annotate.Strategy{"command_not_found": {{Name: "use_the_box", Confidence: 1, Iterations: 1, Steps: []string{"Run it as `./box {program}`: " +
				"all programs are there. || Run it in the box."}}}}
		}, "[use_the_box ask_user]"},
		{func(c *annotate.Config) {
			c.Chains = map[string][]annotate.Strategy{"command_not_found": {{Name: "manual_installation", Confidence: 1}}}
		}, "[alternative_command ask_user]"}, // what is risky stays risky
	} {
		s, _ := stage(t, c.change)
		if got := fmt.Sprint(strategies(t, s, x)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	s, _ := stage(t, func(c *annotate.Config) {
		c.Chains = map[string][]annotate.Strategy{"command_not_found": {{Name: "ask_user", Steps: []string{"write to the help desk"}}}}
	})
	quoting, _ := stage(t, func(c *annotate.Config) {
		c.Chains = map[string][]annotate.Strategy{"command_not_found": {{Name: "load_it", Confidence: 1, Iterations: 1, Steps: []string{"Load {program} with `module load {program}`."}}}}
	})
	if note, _ := quoting.Note(x); !strings.Contains(note, "Load `pytest` with `module load pytest`.") {
		t.Errorf("a slot in a command:\n%s", note)
	}
	x.Turn.Seen = 2
	if note, _ := s.Note(x); !strings.Contains(note, "ask the user to write to the help desk.") || s.Ask(recovery.CommandNotFound) != "write to the help desk." {
		t.Errorf("%q\n%s", s.Ask(recovery.CommandNotFound), note)
	}
}

func TestAsk(t *testing.T) {
	s, _ := stage(t, nil)
	for _, c := range recovery.Categories() {
		if got := s.Ask(c); len(got) < 20 || got[len(got)-1] != '.' || strings.ContainsAny(got, "{}|") {
			t.Errorf("%s: %q", c, got)
		}
	}
	if got := s.Ask(recovery.CategoryNone); got != "" {
		t.Errorf("no category: %q", got)
	}
}

// TestMostCertain: one note for several failures, and the others are named.
func TestMostCertain(t *testing.T) {
	s, _ := stage(t, nil)
	x := failing().exchange(t)
	x.Results[0].Confidence = 0.85
	more := x.Results[0]
	more.Category, more.Confidence, more.Line, more.Fingerprint = recovery.DiskFull, 0.95, "cp: No space left on device", 7
	other := more
	other.Category, other.Confidence = recovery.CategoryNone, 0.99
	x.Results = append(x.Results, more, other)
	note, a := s.Note(x)
	if a.Category != recovery.DiskFull || !strings.Contains(note, "Failed, too: `bash` (`pytest -q`), `bash` (`pytest -q`).") {
		t.Errorf("%+v\n%s", a, note)
	}
	// Of equals, the one that the turn ended in.
	x.Results[0].Confidence = 0.95
	x.Results = x.Results[:2]
	x.Turn.Failure = &recovery.ToolFailure{Fingerprint: 7, Failed: true, Category: recovery.DiskFull}
	if _, a := s.Note(x); a.Category != recovery.DiskFull {
		t.Errorf("%+v", a)
	}
	x.Turn.Failure = &x.Results[0]
	if _, a := s.Note(x); a.Category != recovery.CommandNotFound {
		t.Errorf("%+v", a)
	}
}

// TestOnlyTheTail: whatever the note, every byte of the history stays.
func TestOnlyTheTail(t *testing.T) {
	s, _ := stage(t, nil)
	raw := failing().bytes()
	x := exchange(t, raw)
	if err := s.Prepare(t.Context(), x); err != nil || x.Guidance == "" {
		t.Fatal(err, x.Guidance)
	}
	out, err := x.Body.Edit().AppendNote(x.Guidance).Apply()
	if err != nil {
		t.Fatal(err)
	}
	last := x.Body.Messages()[len(x.Body.Messages())-1]
	if string(out[:last.End]) != string(raw[:last.End]) || string(x.Body.Raw()) != string(raw) {
		t.Error("something before the tail changed")
	}
	b, err := transcript.Parse(out, transcript.Chat, transcript.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Messages()[len(b.Messages())-1]; got.Role != transcript.RoleUser || got.Text() != x.Guidance {
		t.Errorf("the last message is %s %q", got.Role, got.Text())
	}
}

// TestDeterminism: the same body gives the same note, also after another parse.
func TestDeterminism(t *testing.T) {
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	raw := agent(bash, read, write, grep, ls, ask).run("find . -name '*.py'", "./a/x.py\n./b/x.py\n./c/x.py\n./d/x.py\n").call("read",
		object{"path": "x.py"}, "Error: ENOENT: no such file or directory, open 'x.py'").bytes()
	want := ""
	for range 20 {
		s, err := annotate.New(annotate.Defaults(), chains, &recoverytest.Observer{})
		if err != nil {
			t.Fatal(err)
		}
		note, _ := s.Note(exchange(t, raw))
		if want == "" {
			want = note
		}
		if note != want || note == "" {
			t.Fatalf("%s\nthen\n%s", want, note)
		}
	}
	if !strings.Contains(want, "`a/x.py`, `b/x.py` or `c/x.py`") {
		t.Errorf("not the newest and first three:\n%s", want)
	}
}

// Once a person has spoken, the old failure is theirs to talk about.
func TestThePersonSpoke(t *testing.T) {
	s, told := stage(t, nil)
	x := failing().user("use python3 then").exchange(t)
	if err := s.Prepare(t.Context(), x); err != nil || x.Guidance != "" || len(told.Events()) != 0 {
		t.Errorf("%v, %q, %d events", err, x.Guidance, len(told.Events()))
	}
}
