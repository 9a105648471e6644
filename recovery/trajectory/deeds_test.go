package trajectory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestDeeds: what command lines, code and calls of tools do.
func TestDeeds(t *testing.T) {
	for line, want := range map[string]string{
		"ls -la && cat a.txt":                     "run",
		"sudo apt-get install -y jq":              "install,elevate,network,write,run",
		"pip install requests":                    "install,network,write,run",
		"python3 -m pip install requests":         "install,network,write,run",
		"npm ci":                                  "install,network,write,run",
		"go build ./...":                          "run",
		"rm -rf build":                            "delete,write,run",
		"find . -name '*.pyc' -delete":            "delete,write,run",
		"curl -s https://a.example | head":        "network,run",
		"git push origin main":                    "network,run,publish",
		"git commit -m x":                         "write,run,publish",
		"git status":                              "run",
		"psql -c 'DROP TABLE users'":              "delete,run,database",
		"sqlite3 a.db 'select 1'":                 "run,database",
		"chmod +x a.sh":                           "run,permissions",
		"echo hi > a.txt":                         "write,run",
		"sed -i s/a/b/ f && make":                 "write,run",
		"sed -n 1,5p f":                           "run",
		"timeout 10 env A=1 rm x":                 "delete,write,run",
		"bash -c 'sudo rm x'":                     "delete,elevate,write,run",
		"kubectl delete pod x":                    "delete,run",
		"make install":                            "run",
		"python -c \"import os; os.remove('a')\"": "delete,run",
		"":                                    "run",
		strings.Repeat("sudo ", 600) + "rm x": "elevate,run",
	} {
		if got := trajectory.DeedsOfLine(line); got.String() != want {
			t.Errorf("%.60q: %s, want %s", line, got, want)
		}
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"bash", `{"command":"rm a"}`, "delete,write,run"},
		{"Write", `{"file_path":"/a","content":"x"}`, "write"},
		{"str_replace_editor", `{"command":"view","path":"/a"}`, ""},
		{"str_replace_editor", `{"command":"create","path":"/a"}`, "write"},
		{"Read", `{"file_path":"/a"}`, ""},
		{"WebFetch", `{"url":"https://a.example"}`, "network"},
		{"delete_file", `{"path":"/a"}`, "delete"},
		{"execute_sql", `{"query":"select 1"}`, "run,database"},
		{"python", `{"code":"import requests\nrequests.get('https://a.example')"}`, "network,run"},
		{"get_weather", `{"city":"Rome"}`, ""},
	} {
		call := trajectory.Call{Tool: c.tool, Arguments: c.arguments}
		if got := call.Deeds(); got.String() != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.arguments, got, c.want)
		}
	}
}

// TestChanges: what tells exploring from changing.
func TestChanges(t *testing.T) {
	for arguments, want := range map[[2]string]bool{
		{"bash", `{"command":"ls"}`}:              false,
		{"bash", `{"command":"go test ./..."}`}:   false,
		{"bash", `{"command":"sed -i s/a/b/ f"}`}: true,
		{"Edit", `{"file_path":"a"}`}:             true,
		{"Grep", `{"pattern":"a"}`}:               false,
		{"book_reservation", `{"user_id":"a"}`}:   true,
		{"get_reservation_details", `{"id":"a"}`}: false,
		{"TodoWrite", `{"todos":[]}`}:             false,
		{"update_plan", `{"plan":[]}`}:            false,
		{"", ""}:                                  false,
	} {
		call := trajectory.Call{Tool: arguments[0], Arguments: arguments[1]}
		if call.Changes() != want {
			t.Errorf("%s: changes %v, want %v", arguments, !want, want)
		}
	}
}

// TestParameters: what parameters hold, from their names and their schemas.
func TestParameters(t *testing.T) {
	tool := func(name, properties string) trajectory.Tool {
		def := transcript.Tool{Name: name, Parameters: []byte(`{"type":"object","properties":` + properties + `}`), Raw: []byte("{}")}
		return trajectory.ToolOf(def)
	}
	holds := func(tl trajectory.Tool) (out []string) {
		for _, p := range tl.Params {
			out = append(out, fmt.Sprintf("%s=%d", p.Name, p.Holds))
		}
		return out
	}
	tl := tool("remote_do", `{"what":{"type":"string"},"where":{"type":"string"},"n":{"type":"integer"},"page":{"type":"string","description":"URL of the page"},"file_path":{"type":"string"}}`)
	if got := fmt.Sprint(holds(tl)); got != "[what=0 where=0 n=0 page=4 file_path=1]" || tl.Uses != 0 {
		t.Fatalf("holds %s, uses %b", got, tl.Uses)
	}
	tl = tool("remote_do", `{"what":{"type":"string","description":"The shell command to run"}}`)
	if got := tl.Deeds(`{"what":"sudo rm -rf /srv","where":"/"}`); got&(recovery.Elevates|recovery.Deletes) != recovery.Elevates|recovery.Deletes {
		t.Errorf("a command in a parameter does %s", got)
	}
}

func FuzzDeeds(f *testing.F) {
	for _, s := range []string{"sudo rm x", `{"command":"ls"}`, "bash -c 'bash -c \"rm x\"'", "python -m pip install", "env env env", `{"code":"os.remove"}`} {
		f.Add("bash", s)
	}
	f.Fuzz(func(_ *testing.T, tool, arguments string) {
		c := trajectory.Call{Tool: tool, Arguments: arguments}
		_, _ = c.Deeds(), c.Changes()
		_ = trajectory.DeedsOfLine(arguments)
		tl := trajectory.ToolOf(transcript.Tool{Name: tool, Parameters: []byte(arguments)})
		_ = tl.Deeds(arguments)
	})
}
