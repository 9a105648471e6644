package annotate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

func TestLoopNotes(t *testing.T) {
	c := agent(bash, read, ask)
	for range 3 {
		c.call("read", object{"path": "src/main.go"}, "package main\n")
	}
	for _, tc := range []struct {
		kind       recovery.LoopKind
		count      int
		want, lack []string
	}{
		{recovery.LoopSameResult, 2, []string{"same call of `read` (`{\"path\":\"src/main.go\"}`) twice, with the same result", "use it"}, []string{"Do not make it again", "ask the user"}},
		{recovery.LoopSameResult, 3, []string{"You have made the same call of `read` (`{\"path\":\"src/main.go\"}`) 3 times, with the same " +
			"result. Do not make it again"}, nil},
		{recovery.LoopSameError, 2, []string{"twice, with the same error"}, []string{"Do not make it again"}},
		{recovery.LoopSameError, 3, []string{"3 times, with the same error. Do not make it again", "what the error names"}, nil},
		{recovery.LoopSameError, 4, []string{"4 times, with the same error. Do not make it again", "ask the user with `ask_user`"}, nil},
		{recovery.LoopAlternation, 2, []string{"back and forth between `read` and `bash` twice"}, nil},
		{recovery.LoopAlternation, 4, []string{"back and forth between `read` and `bash` 4 times", "Do not start another round"}, nil},
		{recovery.LoopCycle, 2, []string{"same round of calls (`read` and `bash`) twice, with the same results", "change what one of them depends on"}, []string{"Do not start", "ask the user"}},
		{recovery.LoopCycle, 3, []string{"same round of calls (`read` and `bash`) 3 times, with the same results. Do not start another round"}, nil},
		{recovery.LoopCounter, 4, []string{"same call of `read` 4 times " +
			"with only a higher number each time, and nothing new came back.", "look in another way"}, []string{"Do not count on", "ask the user", "main.go"}},
		{recovery.LoopCounter, 9, []string{"same call of `read` 9 times", "look in another way"}, []string{"Do not count on", "ask the user"}},
		{recovery.LoopMonologue, 2, []string{"same text twice, without calling a tool"}, nil},
		{recovery.LoopMonologue, 3, []string{"same text 3 times, without calling a tool", "Make the call"}, nil},
		{recovery.LoopNoProgress, 12, []string{"brought nothing new"}, []string{"ask the user"}},
		{recovery.LoopNoProgress, 12, []string{"The last 12 steps brought nothing new"}, nil},
		{"a_new_kind", 2, []string{"brought nothing new"}, nil},
	} {
		s, o := stage(t, nil)
		x := c.exchange(t)
		tools := []string{"read"}
		if tc.kind == recovery.LoopAlternation || tc.kind == recovery.LoopCycle {
			tools = []string{"read", "bash"}
		}
		x.Loops = []recovery.Loop{{Kind: tc.kind, Count: tc.count, Tools: tools, From: 2, To: 7, New: true}}
		if err := s.Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, x.Guidance)
		for _, w := range tc.want {
			if !strings.Contains(x.Guidance, w) {
				t.Errorf("%s %d lacks %q:\n%s", tc.kind, tc.count, w, x.Guidance)
			}
		}
		for _, w := range tc.lack {
			if strings.Contains(x.Guidance, w) {
				t.Errorf("%s %d has %q:\n%s", tc.kind, tc.count, w, x.Guidance)
			}
		}
		if strings.Contains(strings.ToLower(x.Guidance), "change approach") {
			t.Errorf("%s: models stop using tools after this:\n%s", tc.kind, x.Guidance)
		}
		if len(o.Events()) != 1 || o.Events()[0].Advice.Loop != tc.kind || o.Events()[0].Advice.Count != tc.count || o.Events()[0].Advice.Category != "" {
			t.Errorf("%s: %+v", tc.kind, o.Events())
		}
	}
}

// TestFailureAndLoop: one note for both, and the loop's count rotates the strategies.
func TestFailureAndLoop(t *testing.T) {
	s, o := stage(t, nil)
	c := agent(bash, read)
	for range 3 {
		c.run("cat a/b.txt", "cat: a/b.txt: No such file or directory\n\nCommand exited with code 1")
	}
	x := c.exchange(t)
	x.Ladder.Rung, x.Ladder.Same, x.Ladder.Given = recovery.RungStuck, 3, 1
	x.Loops = []recovery.Loop{
		{Kind: recovery.LoopNoProgress, Count: 2},
		{Kind: recovery.LoopSameError, Count: 3, Tools: []string{"bash"}, From: 2, To: 7, New: true},
	}
	if err := s.Prepare(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	note := x.Guidance
	wellFormed(t, note)
	if !strings.Contains(note, "list") && !strings.Contains(note, "create") || !strings.Contains(note, "the same call of `bash` (`cat a/b.txt`) 3 times, with the same error. Do not make it again") {
		t.Errorf("not both:\n%s", note)
	}
	a := o.Events()[0].Advice
	if a.Category != recovery.FileNotFound || a.Loop != recovery.LoopSameError || a.Count != 3 || slices.Contains(a.Strategies, "verify_path") {
		t.Errorf("%+v\n%s", a, note)
	}
}

// TestWaitNote: an agent that waits is told nothing until it has waited long, and
// then only how long, whatever it failed in.
func TestWaitNote(t *testing.T) {
	s, o := stage(t, nil)
	x := agent(bash, read).run("sleep 5; curl -sf localhost:80", "curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server\n\nCommand exited with code 7").exchange(t)
	x.Turn = recovery.Turn{Waits: true, Key: 7, Streak: 9}
	if err := s.Prepare(t.Context(), x); err != nil || x.Guidance != "" || len(o.Events()) != 0 {
		t.Errorf("%q, %+v, %v", x.Guidance, o.Events(), err)
	}
	x.Turn.Waited = 12 * time.Minute
	if err := s.Prepare(t.Context(), x); err != nil || !strings.Contains(x.Guidance, "You have waited for 12 minutes, and the answer "+
		"has not changed.") || strings.Contains(x.Guidance, "Do not make") {
		t.Errorf("%q, %v", x.Guidance, err)
	}
	if e := o.Events(); len(e) != 1 || e[0].Advice.Loop != recovery.LoopWaiting {
		t.Errorf("%+v", e)
	}
}

// TestHoldOutIsWarned: sessions of the hold-out share get no notes, but the firm one
// before they may be stopped.
func TestHoldOutIsWarned(t *testing.T) {
	s, o := stage(t, func(c *annotate.Config) { c.Holdout = 1 })
	for count, told := range map[int]bool{2: false, 3: true, 4: true} {
		x := agent(bash, read).run("make", "make: *** [all] Error 2\n\nCommand exited with code 2").exchange(t)
		x.Ladder.Same = count
		x.Session = "s"
		x.Turn = recovery.Turn{Failure: &x.Results[0], Key: 7, Streak: count}
		x.Loops = []recovery.Loop{{Kind: recovery.LoopSameError, Count: count, Tools: []string{"bash"}, From: 2, To: 3, New: true}}
		if err := s.Prepare(t.Context(), x); err != nil || (x.Guidance != "") != told {
			t.Errorf("%d times: %q, %v", count, x.Guidance, err)
		}
	}
	if n := len(o.Events()); n != 3 {
		t.Errorf("%d events", n)
	}
}

// TestLoopOfServing: an agent that serves a person, with tools of a business, is told
// of a repetition and of nothing to do about it.
func TestLoopOfServing(t *testing.T) {
	s, _ := stage(t, nil)
	lookup := tool("get_reservation", "Get the details of a reservation.", "*reservation_id", "string")
	c := agent(lookup)
	for range 3 {
		c.call("get_reservation", object{"reservation_id": "8JX2WO"}, `{"status":"booked"}`)
	}
	x := c.exchange(t)
	x.Loops = []recovery.Loop{{Kind: recovery.LoopSameResult, Count: 3, Tools: []string{"get_reservation"}, From: 2, To: 7, New: true}}
	text, _ := s.Note(x)
	if !strings.Contains(text, "3 times, with the same result.") || strings.Contains(text, "Do not make it again") || strings.Contains(text, "ask the user") || strings.Contains(text, "say in one sentence") {
		t.Errorf("the note is\n%s", text)
	}
}

// Two calls of one tool that alternate are named as such.
func TestBackAndForthOfOneTool(t *testing.T) {
	s, _ := stage(t, nil)
	x := agent(bash).run("ls", "a").run("cat a", "b").exchange(t)
	x.Loops = []recovery.Loop{{Kind: recovery.LoopAlternation, Count: 2, Tools: []string{"bash"}, From: 2, To: 5, New: true}}
	if err := s.Prepare(t.Context(), x); err != nil || !strings.Contains(x.Guidance, "back and forth between two calls of `bash` twice") {
		t.Errorf("%v: %s", err, x.Guidance)
	}
}
