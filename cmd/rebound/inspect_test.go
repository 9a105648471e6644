package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const recordedRequest = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"go"},
{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},
{"role":"tool","tool_call_id":"a","content":"ls: cannot access 'x': No such file or directory"},
{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"bash","arguments":"{\"command\":\"uv run\"}"}}]},
{"role":"tool","tool_call_id":"b","content":"bash: line 1: uv: command not found"}]}`

// stuckRequest has the same call and failure four times.
var stuckRequest = `{"messages":[{"role":"user","content":"x"}` + strings.Repeat(`,{"role":"assistant","tool_calls":[{"id":"1","type":"function",`+
	`"function":{"name":"bash","arguments":"{\"command\":\"jq .\"}"}}]},{"role":"tool","tool_call_id":"1","content":"bash: jq: command not found"}`, 4) + `]}`

func TestInspect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(file, []byte(recordedRequest), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args        []string
		stdin       string
		code        int
		out, errors []string
	}{
		"file":              {args: []string{file}, out: []string{`"session":"s_`, `"tool_failures":[{"index":5,"tool":"bash","category":"command_not_found","failed":true,"confidence":0.95,"evidence":{"rule":"shell-not-found","line":"bash: line 1: uv: command not found"}}]`, `"loops":[]`}},
		"standard input":    {stdin: recordedRequest, out: []string{`"index":5`}},
		"all":               {args: []string{"--all", "-"}, stdin: recordedRequest, out: []string{`"index":3`, `"file_not_found"`, `"index":5`}},
		"gets on":           {stdin: stuckRequest, out: []string{`"progress":{"steps":4,"percent":8,"recent":0,"stuck":true,"task":"exploring"}`}},
		"the first request": {stdin: `{"messages":[{"role":"user","content":"x"}]}`, out: []string{`{"session":null,"tool_failures":[],"loops":[],"note":null}`}},
		"no JSON":           {stdin: `{"messages":`, code: 2, errors: []string{"rebound inspect: "}},
		"no messages":       {stdin: `{}`, code: 2, errors: []string{"no messages"}},
		"no such file":      {args: []string{file + "x"}, code: 2, errors: []string{"no such file"}},
		"two files":         {args: []string{file, file}, code: 2, errors: []string{"Usage:"}},
		"an unknown flag":   {args: []string{"--nope"}, code: 2, errors: []string{"Usage:"}},
		"both modes":        {args: []string{"--all", "--results"}, code: 2, errors: []string{"Usage:"}},
		"help":              {args: []string{"-h"}, out: []string{"rebound inspect [FILE|-]"}},
		"results": {args: []string{"--results"}, stdin: `{"id":"x","tool":"bash","content":"cat: <a>: No such file or directory"}` + "\n\n" + `{"tool":"read","content":null}` + "\n" + `{"id":3,"tool":"bash","content":[{"type":"text","text":"zsh: command not found: uv"}],"cmd":"uv"}`,
			out: []string{`{"id":"x","category":"file_not_found","failed":true,"confidence":0.95,"evidence":{"rule":"errno-file","line":"cat: <a>: No such file or directory"}}` + "\n", `{"id":null,"category":"none","failed":false,`, `{"id":3,"category":"command_not_found"`}},
		"the command counts": {args: []string{"--results", "-"}, stdin: `{"id":1,"tool":"bash","content":"x.sh: line 1: foo: command not found","cmd":"cat build.log"}`, out: []string{`{"id":1,"category":"none","failed":false`}},
		"why": {args: []string{"--results", "--why"}, stdin: `{"id":1,"tool":"bash","content":"{\"exit_code\":0,\"output\":\"warning: Permission denied, retrying\"}"}`,
			out: []string{`"why":{"matching":[{"rule":"permission-words","class":"permission_denied","found":`, `"line":"warning: Permission denied, retrying"`}},
		"why of a request":   {args: []string{"--why"}, code: 2, errors: []string{"Usage:"}},
		"some lines are bad": {args: []string{"--results"}, stdin: "nope\n" + `{"id":1,"content":"ok"}` + "\n" + `{"id":2}`, code: 1, out: []string{`{"id":1,`}, errors: []string{"line 1:", "line 3: has no content"}},
		"all lines are bad":  {args: []string{"--results"}, stdin: "[]\n", code: 2, errors: []string{"line 1: not a JSON object"}},
		"no lines":           {args: []string{"--results"}, stdin: "\n", code: 2, errors: []string{"empty"}},
		"a long line":        {args: []string{"--results"}, stdin: `{"id":1,"content":"ok"}` + "\n" + strings.Repeat("x", maxInspectLine+1), code: 1, out: []string{`{"id":1,`}, errors: []string{"line 2: the line is longer"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := runWith(noEnv, c.stdin, append([]string{"inspect"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d: %s%s", code, c.code, out, errs)
			}
			for _, want := range c.out {
				if !strings.Contains(out, want) {
					t.Errorf("output %s\nhas no %s", out, want)
				}
			}
			for _, want := range c.errors {
				if !strings.Contains(errs, want) {
					t.Errorf("errors %s\nhave no %s", errs, want)
				}
			}
			if len(c.errors) == 0 && errs != "" {
				t.Error(errs)
			}
			if name != "help" && c.code != 2 {
				for line := range strings.Lines(out) {
					if !json.Valid([]byte(line)) {
						t.Errorf("%s is no JSON", line)
					}
				}
			}
		})
	}
}

// The report contains the loops, and the note or the planner that they lead to.
func TestInspectLaterSteps(t *testing.T) {
	offering := strings.Replace(stuckRequest, "{", `{"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}],`, 1)
	twice := offering[:strings.LastIndex(offering, `,{"role":"assistant"`)]
	twice = twice[:strings.LastIndex(twice, `,{"role":"assistant"`)] + "]}"
	for request, want := range map[string]string{
		twice:    `"loops":[{"kind":"same_error","count":2,"tools":["bash"],"from":1,"to":4}],"note":"[gateway note`,
		offering: `"planner":true}`,
	} {
		if out, errs, code := runWith(noEnv, request, "inspect"); code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s, output %s\nhas no %s", code, errs, out, want)
		}
	}
}

// A request without tools gets no note, and the report says why.
func TestInspectWithoutTools(t *testing.T) {
	out, _, code := runWith(noEnv, stuckRequest, "inspect")
	if code != 0 || !strings.Contains(out, `"note":null,"no_note":"the request offers no tools`) || strings.Contains(out, `"planner":true`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}
