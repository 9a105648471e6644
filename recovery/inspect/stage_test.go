package inspect

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// events keeps what it observes.
type events []recovery.Event

func (e *events) Observe(ev recovery.Event) { *e = append(*e, ev) }

// told is the events in short.
func (e events) told() (out []string) {
	for _, ev := range e {
		s := string(ev.Name)
		switch {
		case ev.Advice != nil:
			s += fmt.Sprint(" ", ev.Advice.Category, " ", ev.Cause, " ", ev.Advice.HeldOut)
		case ev.Loop != nil:
			s += fmt.Sprint(" ", ev.Loop.Kind, " ", ev.Loop.Count)
		case ev.Failure != nil:
			s += fmt.Sprint(" ", ev.Failure.Category)
		}
		out = append(out, s)
	}
	return out
}

func prepared(t *testing.T, s *Stage, x *recovery.Exchange) *recovery.Exchange {
	t.Helper()
	if err := s.Prepare(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestStage(t *testing.T) {
	const failed = "tool_failure_detected command_not_found"
	for _, c := range []struct {
		name, text string
		results    int
		told       []string
	}{
		{"a success", listing, 1, nil},
		{"nothing new", listing + "\n< done\n> thanks", 0, nil},
		{"a failure", notFound, 1, []string{failed}},
		{"a failure again", times(2, notFound), 1, []string{failed, "loop_detected same_error 2", "guidance_outcome command_not_found repeated false"}},
		{"recovered", notFound + listing, 1, []string{"guidance_outcome command_not_found recovered false"}},
		{"recovered in part", notFound + "\n! a {}\n& ls {}\n= bash: a: command not found\n= x", 2, []string{failed, "guidance_outcome command_not_found recovered false"}},
		{"another failure", notFound + "\n! bash {\"command\":\"cat q\"}\n= cat: q: No such file or directory\\n\\nCommand exited with code 1", 1,
			[]string{"tool_failure_detected file_not_found", "guidance_outcome command_not_found other false"}},
		{"a person helped", notFound + "\n> use grep" + listing, 1, nil},
		{"a failure of no kind is not guided", booking + listing, 1, nil},
		{"only talk", times(2, "\n< I will read the code.\n> continue"), 0, []string{"loop_detected monologue 2"}},
	} {
		var seen events
		x := prepared(t, NewStage(Defaults(), RulesForTests(), &seen), &recovery.Exchange{Request: recovery.Request{ID: "r", Body: script(t, c.text), Mode: recovery.ModeObserve, Model: "m"},
			Conversation: recovery.Conversation{Session: "s"}})
		if got := seen.told(); !reflect.DeepEqual(got, c.told) || len(x.Results) != c.results || (x.Turn.Slot != "") != (x.Turn.Failure != nil) {
			t.Errorf("%s: %q, %d results, want %q, %d", c.name, got, len(x.Results), c.told, c.results)
		}
		for _, ev := range seen {
			if ev.Request != "r" || ev.Session != "s" || ev.Model != "m" || ev.Mode != recovery.ModeObserve || ev.Time.IsZero() {
				t.Errorf("%s: %+v", c.name, ev)
			}
			if f := ev.Failure; f != nil && f.Line+f.Arguments != "" {
				t.Errorf("%s: text in an event: %+v", c.name, f)
			}
		}
	}
}

func TestStageFindings(t *testing.T) {
	var seen events
	x := prepared(t, NewStage(Defaults(), RulesForTests(), &seen), &recovery.Exchange{Request: recovery.Request{Body: script(t, times(3, notFound)), Mode: recovery.ModeAct}})
	if len(x.Results) != 1 || x.Results[0].Line == "" || x.Turn.Failure == nil || x.Turn.Streak != 3 || len(x.Loops) != 1 || x.Loops[0].Count != 3 {
		t.Errorf("%+v, %+v, %+v", x.Results, x.Turn, x.Loops)
	}
}

func TestHoldOut(t *testing.T) {
	var seen events
	s := NewStage(Defaults(), RulesForTests(), &seen)
	s.HeldOut = func(session string) bool { return session == "out" }
	for _, session := range []string{"out", "in", ""} {
		prepared(t, s, &recovery.Exchange{Request: recovery.Request{Body: script(t, notFound+listing), Mode: recovery.ModeAct},
			Conversation: recovery.Conversation{Session: session}})
	}
	if len(seen) != 3 || !seen[0].Advice.HeldOut || seen[1].Advice.HeldOut || seen[2].Advice.HeldOut {
		t.Errorf("%q", seen.told())
	}
}

func TestStageLeavesAlone(t *testing.T) {
	side, asked := true, 0
	ask := func() bool { asked++; return false }
	off := Defaults()
	off.Enabled = false
	for _, c := range []struct {
		name string
		cfg  Config
		x    *recovery.Exchange
	}{
		{"off", Defaults(), &recovery.Exchange{Request: recovery.Request{Body: script(t, times(2, notFound)), Mode: recovery.ModeOff}}},
		{"disabled", off, &recovery.Exchange{Request: recovery.Request{Body: script(t, times(2, notFound)), Mode: recovery.ModeAct}}},
		{"no body", Defaults(), &recovery.Exchange{Request: recovery.Request{Mode: recovery.ModeAct}}},
		{"a side request", Defaults(), &recovery.Exchange{Request: recovery.Request{Body: script(t, times(2, notFound)), Mode: recovery.ModeAct},
			Conversation: recovery.Conversation{Side: func() bool { return side }}}},
		{"nothing new: nobody asks whether it is a side request", Defaults(), &recovery.Exchange{Request: recovery.Request{Body: script(t, listing+"\n< done\n> thanks"), Mode: recovery.ModeAct},
			Conversation: recovery.Conversation{Side: ask}}},
		{"people who talk", Defaults(), &recovery.Exchange{Request: recovery.Request{Body: parsed(t, []byte(`{"messages":[`+strings.Join([]string{said("user", "tell me"), said("assistant", "Once upon a time."),
			said("user", "continue"), said("assistant", "Once upon a time."), said("user", "continue")}, ",")+`]}`)), Mode: recovery.ModeAct}}},
	} {
		var seen events
		x := prepared(t, NewStage(c.cfg, RulesForTests(), &seen), c.x)
		if len(seen) > 0 || x.Results != nil || x.Loops != nil || x.Turn != (recovery.Turn{}) || asked > 0 {
			t.Errorf("%s: %q, %+v", c.name, seen.told(), x.Turn)
		}
	}
}

// An agent that only talks is told from a person who says to go on, also where no tools are offered.
func TestMonologueOfAgents(t *testing.T) {
	again := func(nudge string, first ...string) []byte {
		list := append(first, said("assistant", "I will now read the code of the parser."), said("user", nudge), said("assistant", "I will now read the code of the parser."), said("user", nudge))
		return []byte(`{"messages":[` + strings.Join(list, ",") + `]}`)
	}
	for name, c := range map[string]struct {
		raw  []byte
		want int
	}{
		"a person":           {again("continue", said("user", "Tell me.")), 0},
		"code blocks":        {again("continue", said("system", "Give exactly one command in a code block."), said("user", "Go.")), 1},
		"results before":     {again("continue", said("user", "Go."), called(1, "ls", "{}"), answered(1, "a b")), 1},
		"a client's message": {again("No tool was used in the answer. Use a tool, or say that you are done.", said("user", "Go.")), 1},
		"a call in an unknown form": {bytes.ReplaceAll(again("Your edit has new errors:\n- F821 undefined name 'x'\nFix your edit command and try again.", said("user", "Go.")),
			[]byte("of the parser."), []byte("```\\nedit 1:2\\nx\\n```")), 0},
		"a call as an object": {bytes.ReplaceAll(again("The result of executing that last command is:\n Command write_fix returned: Your fix did not target all the buggy lines.", said("user", "Go.")),
			[]byte(`"I will now read the code of the parser."`), []byte(`"{\"thoughts\": \"All lines.\", \"command\": {\"name\": \"write_fix\", \"args\": {\"line\": 7}}}"`)), 0},
		"a block in place of a call": {bytes.Replace(bytes.ReplaceAll(again("No tool was used in the answer. Use a tool, or say that you are done.", said("user", "Go.")),
			[]byte("of the parser."), []byte("```\\nls\\n```")), []byte("{"), []byte(`{"tools":[{"type":"function","function":{"name":"bash"}}],`), 1), 1},
		// instructor's words when the model's JSON does not validate
		"JSON is asked for": {bytes.Replace(again("Correct your JSON ONLY RESPONSE, based on the following errors:\n1 validation error for U\n  Invalid JSON: expected value at line 1 column 1",
			said("user", "Who is it?")), []byte("{"), []byte(`{"response_format":{"type":"json_object"},`), 1), 0},
	} {
		x := prepared(t, NewStage(Defaults(), RulesForTests(), quiet{}), &recovery.Exchange{Request: recovery.Request{Body: parsed(t, c.raw), Mode: recovery.ModeAct}})
		if len(x.Loops) != c.want {
			t.Errorf("%s: %+v", name, x.Loops)
		}
	}
}

// Whether a request is a side request is only asked where something is wrong.
func TestStageAsksSeldom(t *testing.T) {
	for text, want := range map[string]bool{listing: false, listing + "\n! read {\"path\":\"x\"}\n= a\\nb": false, notFound: true, notFound + listing: true, times(2, listing): true} {
		asked := false
		x := prepared(t, NewStage(Defaults(), RulesForTests(), quiet{}), &recovery.Exchange{Request: recovery.Request{Body: script(t, text), Mode: recovery.ModeAct},
			Conversation: recovery.Conversation{Side: func() bool { asked = true; return false }}})
		if asked != want || len(x.Results) == 0 {
			t.Errorf("%q: asked: %v, %+v", text, asked, x.Results)
		}
	}
}

func TestStageConfig(t *testing.T) {
	text := ""
	for i := range 8 {
		text += fmt.Sprintf("\n! grep {\"pattern\":\"p%d\"}\n= No matches found", i)
	}
	for steps, want := range map[int]int{0: 0, 8: 1, 9: 0} {
		cfg := Defaults()
		cfg.NoProgress = steps
		var seen events
		if x := prepared(t, NewStage(cfg, RulesForTests(), &seen), &recovery.Exchange{Request: recovery.Request{Body: script(t, text), Mode: recovery.ModeAct}}); len(x.Loops) != want {
			t.Errorf("%d steps: %+v", steps, x.Loops)
		}
	}
	cfg := Defaults()
	cfg.MinConfidence = 1
	var seen events
	if x := prepared(t, NewStage(cfg, RulesForTests(), &seen), &recovery.Exchange{Request: recovery.Request{Body: script(t, notFound), Mode: recovery.ModeAct}}); len(seen) > 0 || !x.Results[0].Failed {
		t.Errorf("told of a failure below the confidence: %q", seen.told())
	}

	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{NoProgress: 2, MinConfidence: 0.5}, "no_progress: "}, {Config{NoProgress: 61}, "no_progress: "}, {Config{MinConfidence: 1.1}, "confidence: "},
		{Config{MinConfidence: math.NaN()}, "confidence: "}, {Config{NoProgress: -1, MinConfidence: -1}, "no_progress: "},
	} {
		if err := c.cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

// Without results the stage allocates nothing once the history is indexed.
func TestStageIsFree(t *testing.T) {
	body := parsed(t, request(said("user", "x"), called(1, "ls", "{}"), answered(1, "a"), said("assistant", "Done."), said("user", "Now the other.")))
	s, x := NewStage(Defaults(), RulesForTests(), quiet{}), &recovery.Exchange{Request: recovery.Request{Body: body, Mode: recovery.ModeAct}}
	body.Messages()
	if n := testing.AllocsPerRun(100, func() { _ = s.Prepare(t.Context(), x) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The cheap look before the stage misses no observation.
func TestObservable(t *testing.T) {
	for _, instruction := range []string{"You see a prompt bash-$.", "A special interface of files.", "One code block at a time, please.", "Give exactly one action.",
		"Use triple backticks.", "Commands you give will be executed.", "Your response must be one thing in a code block.", "Suggest Python code.", "suggest shell code",
		"A single CODEBLOCK.", "One bash block.", "exactly one triple-backtick fence"} {
		b := parsed(t, []byte(`{"messages":[`+strings.Join([]string{said("system", instruction), said("user", "x"), said("assistant", "```\nls\n```"), said("user", "a b")}, ",")+`]}`))
		if len(trajectory.Results(b)) != 1 {
			t.Fatalf("%q makes no calls of code blocks", instruction)
		}
		if !(&Stage{rules: RulesForTests()}).hasNewResults(b) {
			t.Errorf("%q: missed", instruction)
		}
	}
	for _, action := range []string{"<function=ls></function>", "<command>ls</command>", "<tool_call>{\"name\":\"ls\"}</tool_call>", "Action: ls[.]", "<read_file>a</read_file>", "```\nls\n```"} {
		b := parsed(t, []byte(`{"messages":[`+strings.Join([]string{said("user", "x"), said("assistant", action), said("user", "Observation: a b")}, ",")+`]}`))
		if len(trajectory.Results(b)) != 1 || !(&Stage{rules: RulesForTests()}).hasNewResults(b) {
			t.Errorf("%q: %d results, missed", action, len(trajectory.Results(b)))
		}
	}
	if (&Stage{rules: RulesForTests()}).hasNewResults(parsed(t, []byte(`{"messages":[`+strings.Join([]string{said("system", "Be kind."), said("user", "x"),
		said("assistant", "```\n<a>\n```"), said("user", "thanks")}, ",")+`]}`))) {
		t.Error("a conversation about code is taken for an agent's")
	}
}

func FuzzStage(f *testing.F) {
	for _, text := range []string{times(3, notFound), times(2, booking+listing), times(2, "\n< I will.\n> continue"), polled, refused + "\n> stop"} {
		f.Add(script(f, text).Raw())
	}
	f.Add([]byte(`{"messages":[{"role":"system","content":"exactly one command in a block"},{"role":"assistant","content":"` + "```\\nls\\n```" + `"},{"role":"user","content":"bash-$"}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x","arguments":{"b":[1]}}}]},{"role":"tool","content":[{"type":"text","text":"{\"a\":[]}"}]},7,null]}`))
	f.Add([]byte(`{"messages":[{"role":"tool"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := transcript.Parse(raw, transcript.Chat, transcript.Limits{})
		if err != nil {
			return
		}
		x := &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}, Conversation: recovery.Conversation{Session: "s"}}
		var seen events
		if err := NewStage(Defaults(), RulesForTests(), &seen).Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		loops, results := Loops(b), trajectory.Results(b)
		if len(results) != len(x.Results) {
			t.Errorf("%d results, %d judged", len(results), len(x.Results))
		}
		if len(results) > 0 && !reflect.DeepEqual(loops, x.Loops) || !reflect.DeepEqual(Position(b), x.Turn) {
			t.Errorf("the stage found %+v, %+v; alone it is %+v, %+v", x.Loops, x.Turn, loops, Position(b))
		}
		for _, l := range loops {
			if l.Count < 2 || l.From < 0 || l.From > l.To || l.To >= len(b.Messages()) || l.Fingerprint == 0 {
				t.Errorf("%+v in a history of %d", l, len(b.Messages()))
			}
		}
		if p := x.Turn; p.Streak > p.Seen || p.Seen > lookBack || (p.Failure != nil) != (p.Streak > 0) {
			t.Errorf("%+v", p)
		}
	})
}
