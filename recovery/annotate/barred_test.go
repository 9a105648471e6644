package annotate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

// TestBarred: what a person ruled out is not proposed, whatever the configuration permits.
func TestBarred(t *testing.T) {
	for _, c := range []struct {
		name   string
		talk   *talk
		barred recovery.Deeds
		gone   string // a strategy that is proposed otherwise
		words  string // that the note does not have then
	}{
		{"install", agent(bash).user("Fix it.").run("frob . a.json", "bash: frob: command not found"), recovery.Installs, "manual_installation", "for this project or this user only"},
		{"write", agent(bash).user("Look at it.").run("cat a.txt", "cat: a.txt: No such file or directory"), recovery.Writes, "create_if_appropriate", "create it"},
		{"network", agent(bash).user("Get it.").run("curl https://a.example/x", "curl: (6) Could not resolve host: a.example"), recovery.Reaches, "retry_with_backoff", "once more"},
	} {
		st, _ := stage(t, func(cfg *annotate.Config) { cfg.Risky = true })
		x := c.talk.often(t)
		proposed := map[string]bool{}
		for n := 1; n <= 2; n++ {
			x.Ladder.Given = n - 1
			_, advice := st.Note(x)
			for _, name := range advice.Strategies {
				proposed[name] = true
			}
		}
		if !proposed[c.gone] {
			t.Errorf("%s: %s is never proposed", c.name, c.gone)
		}
		x.Barred = c.barred
		for n := 1; n <= 2; n++ {
			x.Ladder.Given = n - 1
			text, advice := st.Note(x)
			if slices.Contains(advice.Strategies, c.gone) || strings.Contains(text, c.words) {
				t.Errorf("%s, time %d: %s", c.name, n, text)
			}
		}
	}
}

// TestBarredCommands: where a person rules commands out, no tool that runs them takes
// the place of another.
func TestBarredCommands(t *testing.T) {
	s, _ := stage(t, nil)
	x := agent(bash).user("Look at it, run nothing.").call("view_file", object{"path": "a.txt"}, "Error: no such tool: view_file").exchange(t)
	x.Ladder.Rung, x.Ladder.Same, x.Ladder.Kind, x.Ladder.Met = recovery.RungFirst, 1, 1, 0
	if text, _ := s.Note(x); !strings.Contains(text, "`bash` can do that") {
		t.Errorf("the shell is not proposed:\n%s", text)
	}
	x.Barred = recovery.Runs
	if text, _ := s.Note(x); strings.Contains(text, "`bash` can") || strings.Contains(text, "Call `bash`") {
		t.Errorf("the shell is proposed:\n%s", text)
	}
}
