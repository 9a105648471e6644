package annotate_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

func failing() *talk {
	return agent(bash, read).run("frob -q", "/bin/bash: line 1: frob: command not found\n\nCommand exited with code 127")
}

func TestPrepare(t *testing.T) {
	open := &recovery.Reply{Text: "stopped"}
	for _, c := range []struct {
		name          string
		talk          *talk  // nil is failing
		choice        string // a member of the request
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
		{name: "another stage's", change: func(x *recovery.Exchange) { x.Guidance = "stop" }, note: true},
		{name: "stopped", change: func(x *recovery.Exchange) { x.Reply = open }},
		{name: "side request", change: func(x *recovery.Exchange) { x.Side = func() bool { return true } }},
		{name: "not a side request", change: func(x *recovery.Exchange) { x.Side = func() bool { return false } }, note: true, event: true},
		{name: "success", change: func(x *recovery.Exchange) { x.Results[0].Failed, x.Ladder = false, recovery.Ladder{} }},
		{name: "the first time", change: func(x *recovery.Exchange) { x.Ladder.Rung, x.Ladder.Same, x.Ladder.Kind = recovery.RungFirst, 1, 1 }},
		{name: "the person spoke", talk: failing().user("use python3 then")},
		{name: "the client wants no call", choice: `"tool_choice":"none",`},
		{name: "nothing", change: func(x *recovery.Exchange) { x.Results, x.Ladder = nil, recovery.Ladder{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, o := stage(t, c.config)
			x := exchange(t, []byte(strings.Replace(string(cmp.Or(c.talk, failing()).bytes()), `"messages"`, c.choice+`"messages"`, 1)))
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
			want := recovery.Advice{Category: recovery.CommandNotFound, Strategies: []string{"alternative_command"}, Count: 2, HeldOut: c.out}
			if ev.Name != recovery.EventGuidance || ev.Observed != c.observed || fmt.Sprint(*ev.Advice) != fmt.Sprint(want) || ev.Session != x.Session || ev.Request != x.ID {
				t.Errorf("the event is %+v, the advice %+v", ev, *ev.Advice)
			}
		})
	}
}

// Failures of one kind may be of several tools: the note does not count them for the last one.
func TestKindOfSeveralTools(t *testing.T) {
	s, _ := stage(t, nil)
	x := exchange(t, failing().bytes())
	x.Ladder.Same, x.Ladder.Kind = 1, 3
	if err := s.Prepare(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if want := "3 calls have failed within a few steps: no such command here."; !strings.Contains(x.Guidance, want) || strings.Contains(x.Guidance, "`bash` has failed") {
		t.Errorf("the guidance is %q, without %q", x.Guidance, want)
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

func TestToolsDecide(t *testing.T) {
	const out = "cat: a/b.txt: No such file or directory\n\nCommand exited with code 1"
	weather := tool("get_weather", "The weather of a city.", "*city", "string")
	for _, c := range []struct {
		name string
		talk *talk
		want string
	}{
		{"shell", agent(bash).run("cat a/b.txt", out), "[verify_path]"},
		{"reading only", agent(read).call("read", object{"path": "a/b.txt"}, "Error: ENOENT: no such file or directory, open 'a/b.txt'"), "[verify_path]"},
		{"neither", agent(weather).call("read_file", object{"path": "a/b.txt"}, "Error: ENOENT: no such file or directory, open 'a/b.txt'"), "[ask_user]"},
	} {
		s, _ := stage(t, nil)
		if got := fmt.Sprint(strategies(t, s, c.talk.often(t))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// The next step needs a tool that writes.
	s, _ := stage(t, nil)
	x := agent(bash).run("cat a/b.txt", out).often(t)
	x.Ladder.Given = 1
	if got := fmt.Sprint(strategies(t, s, x)); got != "[create_if_appropriate]" {
		t.Errorf("the second time: %s", got)
	}
	// Only what the model may call counts.
	raw := strings.Replace(string(agent(bash, weather).call("bash", object{"command": "cat a/b.txt"}, out).bytes()), `{"messages"`,
		`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","name":"get_weather"}]}},"messages"`, 1)
	x = exchange(t, []byte(raw))
	x.Ladder.Same = 5
	if got := fmt.Sprint(strategies(t, s, x)); got != "[ask_user]" {
		t.Errorf("tools that are not allowed: %s", got)
	}
}

func TestAskingTool(t *testing.T) {
	s, _ := stage(t, nil)
	x := agent(bash, ask).run("frob", "/bin/bash: line 1: frob: command not found\n").exchange(t)
	x.Ladder.Given = 1
	note, _ := s.Note(x)
	if !strings.Contains(note, "ask the user with `ask_user` to install") {
		t.Errorf("the tool is not named:\n%s", note)
	}
	x = failing().exchange(t)
	x.Ladder.Given = 1
	note, _ = s.Note(x)
	if !strings.Contains(note, "ask the user to install `frob`") {
		t.Errorf("the answer is not named:\n%s", note)
	}
}

func TestRiskyAndForbidden(t *testing.T) {
	x := failing().exchange(t)
	for _, c := range []struct {
		change func(*annotate.Config)
		want   string
	}{
		{nil, "[alternative_command]"},
		{func(c *annotate.Config) { c.Risky = true }, "[alternative_command]"},
		{func(c *annotate.Config) { c.Risky, c.Forbid = true, []string{"alternative_command"} }, "[manual_installation]"},
		{func(c *annotate.Config) { c.Forbid = []string{"alternative_command"} }, "[ask_user]"},
		{func(c *annotate.Config) {
			c.Chains = map[string][]annotate.Strategy{"command_not_found": {{Name: "use_the_box", Confidence: 1, Iterations: 1, Steps: []string{"Run it as `./box {program}`: " +
				"all programs are there. || Run it in the box."}}}}
		}, "[use_the_box]"},
		{func(c *annotate.Config) {
			c.Chains = map[string][]annotate.Strategy{"command_not_found": {{Name: "manual_installation", Confidence: 1}}}
		}, "[alternative_command]"}, // what is risky stays risky
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
	if note, _ := quoting.Note(x); !strings.Contains(note, "Load `frob` with `module load frob`.") {
		t.Errorf("a slot in a command:\n%s", note)
	}
	x.Ladder.Given = 1
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
