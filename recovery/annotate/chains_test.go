package annotate_test

import (
	"fmt"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

// Every strategy of every chain is given to an agent that it suits, once those before it are forbidden. A new strategy or
// chain that no failure here leads to fails the test: add one that does.
func TestEveryStrategyIsGiven(t *testing.T) {
	const ended = "\n\nExit code: 1"
	edit := tool("edit", "Edit a file.", "*path", "string", "*old_string", "string", "*new_string", "string")
	all := func() *talk { return agent(bash, read, write, ls, grep, edit) }
	many := all() // so many tools that a fact does not name them
	for i := range 5 {
		many.tools = append(many.tools, tool(fmt.Sprint("frob_", i), "Frob.", "*x", "string"))
	}
	failures := map[string]*talk{
		"command_not_found": all().run("frob x", "bash: frob: command not found\nExit code: 127"),
		"tool_not_found":    many.call("quux", object{"x": "1"}, "Unknown tool: quux"),
		"permission_denied": all().run("cat /etc/shadow", "cat: /etc/shadow: Permission denied"+ended),
		"timeout":           all().run("frob x", "Command timed out after 120 seconds"),
		"file_not_found":    all().run("cat a/b.txt", "cat: a/b.txt: No such file or directory"+ended),
		"invalid_arguments": all().run("frob --far", "frob: unrecognized option '--far'"+ended),
		"edit_failed":       all().call("edit", object{"path": "a.py", "old_string": "x", "new_string": "y"}, "Error: String to replace not found in file."),
		"syntax_error":      all().run("frob (x)", "bash: -c: line 1: syntax error near unexpected token `('\nbash: -c: line 1: `frob (x)'"+ended),
		"network_error":     all().run("curl https://x.example", "curl: (6) Could not resolve host: x.example"+ended),
		"rate_limited":      all().run("gh api x", "API rate limit exceeded for user ID 1."+ended),
		"disk_full":         all().run("make > /tmp/make.log 2>&1", "").run("cp a b", "cp: error writing 'b': No space left on device"+ended),
	}
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	for category, chain := range chains {
		failure := failures[category]
		if failure == nil {
			t.Errorf("%s: no failure leads to this chain: add one", category)
			continue
		}
		for i, strategy := range chain {
			s, _ := stage(t, func(c *annotate.Config) {
				c.Risky = true
				for k, other := range chain {
					if k != i && other.Name != "ask_user" {
						c.Forbid = append(c.Forbid, other.Name)
					}
				}
			})
			x := failure.exchange(t)
			x.Ladder.Same = 5
			if got, want := fmt.Sprint(strategies(t, s, x)), "["+strategy.Name+"]"; got != want {
				t.Errorf("%s: %s is given, want %s", category, got, want)
			}
		}
	}
}

// Different failures of a kind are silent where a program's own message says it all, so that the first repetition is not too
// late for a strategy of the chain.
func TestFirstNoteIsNoQuestion(t *testing.T) {
	s, _ := stage(t, nil)
	for _, c := range []struct {
		same, given int
		want        string
	}{{5, 2, "[cached_data]"}, {5, 3, "[ask_user]"}, {2, 3, "[cached_data]"}} {
		x := agent(bash).run("curl https://x.example", "curl: (6) Could not resolve host: x.example\n\nExit code: 1").exchange(t)
		x.Ladder.Same, x.Ladder.Given = c.same, c.given
		x.Loops = []recovery.Loop{{Kind: recovery.LoopSameError, Count: c.same, Tools: []string{"bash"}, From: 2, To: 3, New: true}}
		if got := fmt.Sprint(strategies(t, s, x)); got != c.want {
			t.Errorf("the same %d times, after %d notes: %s, want %s", c.same, c.given, got, c.want)
		}
	}
}
