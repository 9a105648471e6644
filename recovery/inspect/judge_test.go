package inspect

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

func judge(tool, arguments, content string) recovery.ToolFailure {
	return Judge(recovery.ToolResult{Index: 7, CallID: "id", Tool: tool, Arguments: arguments, Content: content})
}

// What a command reads is data; what the reading program says is not.
func TestCommandsDecideWhatIsData(t *testing.T) {
	for command, want := range map[string]recovery.Category{
		`{"command":"make"}`:              recovery.CommandNotFound,
		`make`:                            recovery.CommandNotFound,
		`{"command":"tail -5 build.log"}`: recovery.CategoryNone,
		`{"command":"cd /app && grep -rn 'not found' . | head"}`: recovery.CategoryNone,
		`{"cmd":["bash","-lc","cat a.log | sed -n '1,5p'"]}`:     recovery.CategoryNone,
		`{"command":"git -C repo log -3; LANG=C git show HEAD"}`: recovery.CategoryNone,
		`{"command":"cat a.log; make"}`:                          recovery.CommandNotFound,
		`{"command":"echo '; make'; cat \"a|make\" | sort -u"}`:  recovery.CategoryNone,
		`{"path":"x"}`:                recovery.CommandNotFound,
		strings.Repeat("x", 16<<10+1): recovery.CommandNotFound,
		`{"command":"docker logs app && kubectl logs -f pod/app"}`: recovery.CategoryNone,
	} {
		if f := judge("bash", command, "x\n./build.sh: line 1: foo: command not found\n"); f.Category != want {
			t.Errorf("%.60s: %+v, want %s", command, f, want)
		}
	}
	if f := judge("bash", `{"command":"cat a b"}`, "text of a\ncat: b: No such file or directory"); f.Category != recovery.FileNotFound || f.Confidence < Threshold {
		t.Errorf("%+v", f)
	}
	for command, fails := range map[string]bool{"pgrep x": true, "pgrep x || ss -t": false} {
		if f := judge("bash", command, "<returncode>0</returncode>\n<output>\n/bin/sh: 1: pgrep: not found\nLISTEN 0 511\n</output>"); f.Failed != fails {
			t.Errorf("%s: %+v", command, f)
		}
	}
	for command, fails := range map[string]bool{"grep x a": false, "make check": true, "cd a && diff b c": false} {
		if f := judge("bash", command, "Exit code: 1\nOutput:\nsome text"); f.Failed != fails || f.Category != recovery.CategoryNone {
			t.Errorf("%s: %+v", command, f)
		}
	}
}

func TestFailureIsComplete(t *testing.T) {
	f := judge("bash", "cat x", "cat: x: No such file or directory")
	if !f.Failed || f.Index != 7 || f.CallID != "id" || f.Tool != "bash" || f.Arguments != "cat x" || f.Rule == "" || f.Line != "cat: x: No such file or directory" || f.Fingerprint == 0 {
		t.Errorf("%+v", f)
	}
	f = judge("bash", "", "fine")
	if f.Failed || f.Category != recovery.CategoryNone || f.Fingerprint != 0 || f.Line != "" || f.Rule == "" {
		t.Errorf("%+v", f)
	}
	f = judge("bash", "", "cat: "+strings.Repeat("é", 400)+": No such file or directory\nExit code: 1")
	if n := utf8.RuneCountInString(f.Line); !f.Failed || n > maxLine {
		t.Errorf("%d runes: %+v", n, f)
	}
}

// The line of a failure of no known kind says what is wrong, even if other lines follow.
func TestLineOfAFailure(t *testing.T) {
	for line, output := range map[string]string{
		"Error: Cannot find module 'leftpad'":         "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module 'leftpad'\nRequire stack:\n- /w/a.js\n    at node:internal/process/execution:118:14 {\n  code: 'MODULE_NOT_FOUND',\n}\n\nNode.js v20.20.2",
		"fatal: No configured push destination.":      "fatal: No configured push destination.\nEither specify the URL from the command-line or configure a remote repository using\n\n    git remote add <name> <url>",
		"A.java:3: error: incompatible types: String": "A.java:3: error: incompatible types: String\n    int n = s;\n            ^\n1 error",
	} {
		if f := judge("bash", "", wrapped(1, output)); f.Line != line {
			t.Errorf("%q, not %q", f.Line, line)
		}
	}
}

// What is wrong in a program that a shell runs is no matter of the call.
func TestTracebacksOfPrograms(t *testing.T) {
	trace := func(exception string) string {
		return "Traceback (most recent call last):\n  File \"/w/run.py\", line 62, in <module>\n    from m import A\n  File \"/w/m.py\", line 697, in A\n    @add_docs(\n" + exception
	}
	const signature = "TypeError: add_docs() got an unexpected keyword argument 'tokenizer_class'"
	if f := judge("bash", "", trace(signature)); !f.Failed || f.Category != recovery.CategoryNone {
		t.Errorf("a wrong call in a program: %+v", f)
	}
	if f := judge("book", "", trace(signature)); !f.Failed || f.Category != recovery.InvalidArguments {
		t.Errorf("a wrong call of a tool: %+v", f)
	}
	shown := "\n[File: /w/a.py (3 lines total)]\n1:import a\n2:\n3:a.run()\nFile updated. Please review the changes and make sure they are correct (no duplicate lines)."
	if f := judge("bash", "", trace("ValueError: not enough values to unpack (expected 3, got 2)")+shown); f.Failed {
		t.Errorf("an editor whose linter broke, and that shows the new file: %+v", f)
	}
	if f := judge("bash", "", "/c/edit.sh: line 79: /w/a.py: Permission denied"+shown); f.Category != recovery.PermissionDenied {
		t.Errorf("an editor that could not write: %+v", f)
	}
}

func TestFingerprint(t *testing.T) {
	same := [][]string{
		{"cat: /tmp/tmpab12cd/x.txt: No such file or directory", "cat: /tmp/tmpzz99yy/x.txt: No such file or directory"},
		{"curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received", "curl: (28) Operation timed out after 5003 milliseconds with 12 bytes received"},
		{"app.py:12:5: error: syntax error near x", "app.py:14:9: error: syntax error near x"},
		{"Error: request 3f2504e0-4f89-11d3-9a0c-0305e82c3301 timed out after 30s", "Error: request 9b2504e0-4f89-11d3-9a0c-0305e82c3344 timed out after 31s"},
		{"Error: connect ECONNREFUSED at 2026-03-01T10:00:01Z", "Error: connect ECONNREFUSED at 2026-03-02T11:07:41Z"},
		{"ConnectionError: <urllib3.connection.HTTPConnection object at 0x7fa118122910>: refused", "ConnectionError: <urllib3.connection.HTTPConnection object at 0x7fb118122abc>: refused"},
		{"exitcode: 1 (execution failed)\nCode output: SyntaxError: invalid syntax (tmp_code_a00908f9d7f2c4c5.py, line 3)", "exitcode: 1 " +
			"(execution failed)\nCode output: SyntaxError: invalid syntax (tmp_code_bb1908f9d7f2c4c5.py, line 8)"},
		{"Error: Exit code 127\nbash: line 3: uv: command not found", "Error: Exit code 127\nbash: line 9: uv: command not found"},
	}
	for _, pair := range same {
		a, b := judge("bash", "", pair[0]), judge("bash", "", pair[1])
		if a.Fingerprint != b.Fingerprint || a.Fingerprint == 0 {
			t.Errorf("%q and %q differ:\n %q\n %q", pair[0], pair[1], normalise(a.Line), normalise(b.Line))
		}
	}
	const edit = "Your proposed edit has introduced new syntax error(s). Please read this error message carefully.\n\nERRORS:\n"
	different := []string{"  File \"a.py\", line 3\n    x = (\n        ^\nSyntaxError: invalid syntax", "  File \"b.py\", line 9\n    return 1 1\n        ^\nSyntaxError: invalid syntax",
		"cat: a.txt: No such file or directory", "cat: b.txt: No such file or directory", "cat: a.txt: Permission denied",
		edit + "- F821 undefined name 'x'\n\nThis is how your edit would have looked if applied", edit + "- F821 undefined name 'y'\n\nThis is how your edit would have looked if applied",
		"cat: part1.txt: No such file or directory", "cat: part2.txt: No such file or directory", "bash: line 1: uv: command not found", "bash: line 1: rg: command not found"}
	seen := map[uint64]string{}
	for _, text := range different {
		f := judge("bash", "", text)
		if other, ok := seen[f.Fingerprint]; ok || f.Fingerprint == 0 {
			t.Errorf("%q is the same as %q", text, other)
		}
		seen[f.Fingerprint] = text
	}
	if judge("bash", "", different[0]).Fingerprint == judge("shell", "", different[0]).Fingerprint {
		t.Error("the tool does not count")
	}
}

// A huge result costs little more than reading it. The limit is for slow machines
// with the race detector; it is there to catch quadratic time.
func TestHugeResults(t *testing.T) {
	for name, unit := range map[string]string{
		"one line": "a", "lines": "x: y\n", "brackets": "[", "braces": "{", "objects": `{"error":`, "tags": "<output>", "escapes": "\x1b[", "colons": ": ",
		"exit codes": "Exit code: 1\n", "fences": "```\n", "errors": "Error: ", "spaces": " ", "traceback": "Traceback (most recent call last):\n  x\n", "unicode": "\xff",
		"denied": "a: b: Permission denied ", "quotes": `'"`,
	} {
		content := strings.Repeat(unit, (1<<20)/len(unit))
		start := time.Now()
		Judge(recovery.ToolResult{Tool: "bash", Content: content})
		Judge(recovery.ToolResult{Tool: "read", Content: content, Arguments: content[:1<<19]})
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
	huge := strings.Repeat("line of a log\n", 200_000) + "cp: x: No space left on device\nExit code: 1"
	if f := judge("bash", "", huge); f.Category != recovery.DiskFull {
		t.Errorf("%+v", f)
	}
}

func FuzzJudge(f *testing.F) {
	list := rounds(f)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		for i, r := range list[name] {
			if i%3 == 0 && len(r.Content) < 2000 {
				f.Add(r.Tool, r.Cmd, r.Content)
			}
		}
	}
	f.Fuzz(func(t *testing.T, tool, arguments, content string) {
		r := recovery.ToolResult{Tool: tool, Arguments: arguments, Content: content}
		a := Judge(r)
		if a != Judge(r) {
			t.Fatal("not deterministic")
		}
		if a.Failed != (a.Fingerprint != 0) || !a.Failed && (a.Category != recovery.CategoryNone || a.Line != "") || a.Rule == "" {
			t.Fatalf("%+v", a)
		}
		if a.Confidence <= 0 || a.Confidence > 1 || !utf8.ValidString(a.Line) || utf8.RuneCountInString(a.Line) > maxLine {
			t.Fatalf("%+v", a)
		}
	})
}
