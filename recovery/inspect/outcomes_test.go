package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// waiting is told what followed failures; of every session something is awaited, or of none.
type waiting struct {
	open bool
	told []string
}

func (w *waiting) Open(string) bool { return w.open }

func (w *waiting) After(a recovery.After) {
	s := fmt.Sprint(a.Calls)
	if a.Fingerprint == 0 {
		s = "turn " + s
	}
	for _, f := range []struct {
		is   bool
		name string
	}{{a.Target, "target"}, {a.Same, "same"}, {a.Some, "some"}, {a.Again, "again"}, {a.Person, "person"}, {a.Stopped, "stopped"}} {
		if f.is {
			s += " " + f.name
		}
	}
	w.told = append(w.told, s)
}

// What followed a failure is told from the history alone: at the next call, and at the
// one after it where somebody waits for that.
func TestAfter(t *testing.T) {
	const (
		missing = "\n! read {\"path\":\"settings.py\"}\n= Error: ENOENT: no such file or directory, open 'settings.py'"
		there   = "\n! read {\"path\":\"src/settings.py\"}\n= DEBUG = True"
		denied  = "\n! bash {\"command\":\"echo x > /etc/app.conf\"}\n= bash: /etc/app.conf: Permission denied\\n\\nCommand exited with code 1"
		find    = "\n! bash {\"command\":\"find . -name settings.py\"}\n= ./src/settings.py"
	)
	for _, c := range []struct {
		name, text string
		open       bool
		told       string
	}{
		{"nothing failed", listing + listing, true, "turn 1 same"},
		{"nothing followed", missing, true, ""},
		{"the target", missing + there, false, "1 target"},
		{"finding it is not reading it", missing + find, false, "1 some"},
		{"found, then read", missing + find + there, true, "turn 1 target, 2 target some"},
		{"nobody waits any more", missing + find + there, false, ""},
		{"the same again", times(2, missing), false, "1 same"},
		{"another failure", missing + denied, false, "1"},
		{"another failure, then another success", missing + denied + listing, true, "1 some, 2 some"},
		{"a person while it worked", missing + "\n> leave that", true, "0 person"},
		{"a person, then the target", missing + "\n> it is in src" + there, true, "0 person"},
		{"the model stopped", missing + "\n< I cannot find it.\n> it is in src" + there, true, "0 stopped"},
		{"too long ago", missing + find + listing + there, true, "turn 1 target, turn 1 target"},
		{"another of its kind", missing + "\n! read {\"path\":\"other.py\"}\n= x = 1", false, "1 some again"},
		{"a circle, then something new", listing + listing + there, true, "turn 1 target, turn 1 same"},
		{"a circle, then a failure", listing + listing + missing, true, "turn 1, turn 1 same"},
		{"a circle, then a person", listing + listing + "\n> leave that", true, "turn 0 person, turn 1 same"},
		{"a circle, then an answer", listing + listing + "\n< Done.\n> go on" + there, true, "turn 0 stopped"},
	} {
		w := &waiting{open: c.open}
		s := NewStage(Defaults(), RulesForTests(), quiet{})
		s.Outcomes = w
		prepared(t, s, &recovery.Exchange{Request: recovery.Request{Body: script(t, c.text), Mode: recovery.ModeAct},
			Conversation: recovery.Conversation{Session: "s"}})
		if got := strings.Join(w.told, ", "); got != c.told {
			t.Errorf("%s: told %q, want %q", c.name, got, c.told)
		}
		prepared(t, s, &recovery.Exchange{Request: recovery.Request{Body: script(t, c.text), Mode: recovery.ModeAct}})
		if got := strings.Join(w.told, ", "); got != c.told {
			t.Errorf("%s: a request without a session was told of: %q", c.name, got)
		}
	}
}

func TestAttains(t *testing.T) {
	shell := func(line string) *trajectory.Call { return trajectory.CommandCall(line) }
	tool := func(name, args string) *trajectory.Call { return &trajectory.Call{Tool: name, Arguments: args} }
	for _, c := range []struct {
		failed, made *trajectory.Call
		want         bool
	}{
		{shell("python app.py"), shell("python3 app.py"), true},
		{shell("pytest -q"), shell("cd sub && pytest -q -x"), true},
		{shell("npm test"), shell("ls"), false},
		{shell("cat a/settings.py"), tool("read", `{"path":"b/settings.py"}`), true},
		{shell("cat settings.py"), shell("find . -name settings.py"), false},
		{shell("find . -name a.go"), shell("find src -name a.go"), true},
		{tool("edit_file", `{"path":"a.go","old_text":"x"}`), tool("read", `{"path":"a.go"}`), false},
		{tool("edit_file", `{"path":"a.go","old_text":"x"}`), tool("edit_file", `{"path":"a.go","old_text":"y"}`), true},
		{tool("read_files", `{"path":"a.txt"}`), tool("read", `{"path":"a.txt"}`), true},
		{tool("web_fetch", `{"url":"https://x.example/docs"}`), tool("web_fetch", `{"url":"https://y.example/docs"}`), true},
		{tool("web_fetch", `{"url":"https://x.example/docs"}`), tool("web_fetch", `{"url":"https://y.example/home"}`), false},
		{tool("get_weather", `{}`), tool("get_weather", `{"city":"Paris"}`), true},
		{tool("book", `{"amount":5}`), tool("refund", `{"amount":5}`), false},
		{shell("curl -sS http://a.example/x"), shell("sleep 5"), false},
	} {
		if got := achieves(c.failed, c.made); got != c.want {
			t.Errorf("%v after %v: %v", *c.made, *c.failed, got)
		}
	}
}

// Where nothing failed and nothing is awaited, learning costs a healthy request no allocation.
func TestOutcomesAreFree(t *testing.T) {
	body := script(t, times(6, listing+"\n! bash {\"command\":\"go vet ./...\"}\n= ok"))
	allocated := func(o Outcomes) float64 {
		s := NewStage(Defaults(), RulesForTests(), quiet{})
		s.Outcomes = o
		return testing.AllocsPerRun(200, func() {
			_ = s.Prepare(t.Context(), &recovery.Exchange{Request: recovery.Request{Body: body, Mode: recovery.ModeAct},
				Conversation: recovery.Conversation{Session: "s"}})
		})
	}
	w := &waiting{}
	if with, without := allocated(w), allocated(nil); with > without+1 || len(w.told) > 0 {
		t.Errorf("%v allocations, %v without; told %q", with, without, w.told)
	}
}
