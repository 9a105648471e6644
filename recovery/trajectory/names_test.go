package trajectory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func TestCommandIn(t *testing.T) {
	for in, want := range map[string]string{
		`{"command":"ls -l"}`:                       "ls -l",
		`{"timeout":5,"cmd":["bash","-lc","make"]}`: "make",
		`{"command":["git","status"]}`:              "git status",
		`{"CommandLine":"dir"}`:                     "dir",
		`{"command":"","script":"x"}`:               "x",
		`{"path":"a"}`:                              "",
		`{"command":`:                               "",
		`{"SCRIPT":"a"}`:                            "a",
		`{"Bash_Command":"a"}`:                      "a",
		`{"timeout":1,"c\u006dd":"a"}`:              "a",
		`{"note":"cmd, command or script"}`:         "",
		" ls\n":                                     "ls",
		"":                                          "",
		strings.Repeat("x", 20_000):                 "",
	} {
		if got := trajectory.CommandIn(in); got != want {
			t.Errorf("%.40q: %q, want %q", in, got, want)
		}
	}
}

func TestNameWords(t *testing.T) {
	for in, want := range map[string]string{
		"readFile": "read file", "read_file": "read file", "mcp__fs.read-file2": "mcp fs read file", "BashTool": "bash tool", "": "", "__": "",
		"ÄrgerMachen": "ärger machen", "a1b2c3d4e5f6g7h8i9j": "a b c d e f g h",
	} {
		if got := trajectory.NameWords(in); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
