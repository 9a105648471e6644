package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// Cline's tools take lists, and answer with the outcome of each element.
func TestListOfOutcomes(t *testing.T) {
	const found = `{"query":"src/calc.py","result":"1 | raise Error('no such file or directory')","success":true}`
	const missing = `{"query":"src/nope.py","result":"","error":"Error reading file: ENOENT: no such file or directory, statx '/app/src/nope.py'","success":false}`
	for name, c := range map[string]struct {
		tool, args, content string
		failed              bool
		category            recovery.Category
	}{
		"file":            {"read_files", `{"files":[{"path":"src/calc.py"}]}`, "[" + found + "]", false, recovery.CategoryNone},
		"no file":         {"read_files", `{"files":[{"path":"src/nope.py"}]}`, "[" + missing + "]", true, recovery.FileNotFound},
		"one of two":      {"read_files", `{"files":[{"path":"src/calc.py"},{"path":"src/nope.py"}]}`, "[" + found + "," + missing + "]", true, recovery.FileNotFound},
		"bad pattern":     {"search_codebase", `{"queries":["(unclosed"]}`, `[{"query":"(unclosed","result":"","error":"Search failed: Invalid regex pattern: (unclosed. Invalid regular expression: missing )","success":false}]`, true, recovery.InvalidArguments},
		"nothing found":   {"search_codebase", `{"queries":["zzz"]}`, `[{"query":"zzz","result":"No results found for pattern: zzz\nSearched 3 files.","success":true}]`, false, recovery.CategoryNone},
		"unreachable":     {"fetch_web_content", `{"requests":[{"url":"http://127.0.0.1:9/x","prompt":"what"}]}`, `[{"query":"http://127.0.0.1:9/x","result":"","error":"Error fetching web content: Unable to connect. Is the computer able to access the url?","success":false}]`, true, recovery.NetworkError},
		"command":         {"run_commands", `{"commands":["cat log"]}`, `[{"query":"cat log","result":"Error: file not found\n","success":true}]`, false, recovery.CategoryNone},
		"unknown command": {"run_commands", `{"commands":["frobnicate --all"]}`, `[{"query":"frobnicate --all","result":"[Command exited with code 127]\n\n[stderr]\n/bin/bash: line 1: frobnicate: command not found\n","error":"Command exited with code 127","success":false}]`, true, recovery.CommandNotFound},
		"one of three":    {"run_commands", `{"commands":["ls src","frobnicate","true"]}`, `[{"query":"ls src","result":"calc.py\n","success":true},{"query":"frobnicate","result":"[Command exited with code 127]\n\n[stderr]\n/bin/bash: line 1: frobnicate: command not found\n","error":"Command exited with code 127","success":false},{"query":"true","result":"","success":true}]`, true, recovery.CommandNotFound},
		"syntax error":    {"run_commands", `{"commands":["python3 a.py"]}`, `[{"query":"python3 a.py","result":"[Command exited with code 1]\n\n[stderr]\n  File \"<string>\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n","error":"Command exited with code 1","success":false}]`, true, recovery.SyntaxError},
		"no match":        {"run_commands", `{"commands":["grep -n nothing src/calc.py"]}`, `[{"query":"grep -n nothing src/calc.py","result":"[Command exited with code 1]","error":"Command exited with code 1","success":false}]`, false, recovery.CategoryNone},
		"no words":        {"run_commands", `{"commands":["make"]}`, `[{"query":"make","result":"[Command exited with code 2]\nhalf done\n","error":"Command exited with code 2","success":false}]`, true, recovery.CategoryNone},
		"time limit":      {"run_commands", `{"commands":["sleep 40"]}`, `[{"query":"sleep 40","result":"","error":"Command failed: Command timed out after 30000ms","success":false}]`, true, recovery.ToolTimeout},
		// Lists that say nothing of calls: records, a report.
		"records": {"list_jobs", `{}`, `[{"id":1,"success":false,"error":"no such file or directory"},{"id":2,"success":true}]`, false, recovery.CategoryNone},
		"log":     {"bash", `{"command":"cat log.json"}`, `[{"level":"error","error":"command not found","success":false}]`, false, recovery.CategoryNone},
	} {
		f := judge(c.tool, c.args, c.content)
		if f.Failed != c.failed || f.Category != c.category || f.Category != recovery.CategoryNone && f.Confidence < Threshold {
			t.Errorf("%s: %+v, want %v %s", name, f, c.failed, c.category)
		}
	}
}

// The end of a long list is the end of JSON.
func TestLongListOfOutcomes(t *testing.T) {
	long := make([]byte, 40<<10)
	for i := range long {
		long[i] = 'x'
	}
	content := `[{"query":"make","result":"[Command exited with code 127]\n\n[stderr]\n` + string(long) + `\n/bin/bash: line 1: frobnicate: command not found\n","error":"Command exited with code 127","success":false}]`
	if f := judge("run_commands", `{"commands":["make"]}`, content); f.Category != recovery.CommandNotFound {
		t.Errorf("%+v", f)
	}
}
