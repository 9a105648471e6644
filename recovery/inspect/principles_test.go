package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// entries are logs as programs and collectors write them.
var entries = []string{
	`time="2026-11-18T03:12:44Z" level=error msg="dial tcp 10.0.0.5:5432: connect: connection refused"`,
	`{"level":"error","ts":"2026-11-18T03:12:44Z","msg":"write /data/x: no space left on device"}` + "\n" + `{"level":"info","msg":"done"}`,
	"Nov 18 03:12:44 web1 kernel: EXT4-fs error: No space left on device\nNov 18 03:12:45 web1 sshd[31]: Connection reset by 10.0.0.4 port 22",
	`E1118 03:12:44.123456       1 reflector.go:148] failed to list: dial tcp 10.0.0.1:443: connect: connection refused`,
	"2026/11/18 03:12:44 [error] 31#31: *1 open() \"/srv/x\" failed (2: No such file or directory), client: 1.2.3.4",
	"03:12:44.100 [main] ERROR c.a.App - java.net.ConnectException: Connection refused\n03:12:45.100 [main] INFO  c.a.App - recovered",
	"web-1  | 2026-11-18T03:12:44Z ERROR open /etc/x: permission denied",
	"logs/app.log:2026-11-18 03:12:44,001 ERROR db: connection to db:5432 failed: Connection refused",
	"[    3.123456] EXT4-fs (sda1): error: No space left on device",
}

func wrapped(code int, output string) string {
	return fmt.Sprintf("<returncode>%d</returncode>\n<output>\n%s\n</output>", code, output)
}

// Log entries are data; a call that was ended for its time timed out, whatever they say.
func TestLogEntriesDecideNothing(t *testing.T) {
	for _, text := range entries {
		for _, content := range []string{text, wrapped(0, text)} {
			if f := judge("bash", "", content); f.Failed {
				t.Errorf("%q: %+v", content, f)
			}
		}
		for _, content := range []string{
			wrapped(124, text), "Command timed out after 30s\n" + text, text + "\n\nCommand timed out after 30 seconds",
			fmt.Sprintf(`{"returncode": -1, "output": %q, "exception_info": "An error occurred while executing the command: Command 'tail -f a\nsleep 3' timed out after 30 seconds"}`, text),
		} {
			if f := judge("bash", "", content); f.Category != recovery.ToolTimeout || f.Confidence < Threshold {
				t.Errorf("%q: %+v", content, f)
			}
		}
	}
	last := wrapped(1, "2026/11/18 03:12:43 starting\n2026/11/18 03:12:44 open config.yaml: no such file or directory")
	if f := judge("bash", "", last); f.Category != recovery.FileNotFound || f.Confidence < Threshold {
		t.Errorf("%+v", f)
	}
	if f := judge("bash", "", wrapped(124, "xargs: ./run.sh: exited with status 255; aborting")); f.Category != recovery.CategoryNone || !f.Failed {
		t.Errorf("%+v", f)
	}
}

// The summary of a test runner closes what stands above it; what follows counts.
func TestSummariesOfTests(t *testing.T) {
	noise := "cat: a.txt: No such file or directory\nError: connect ECONNREFUSED 127.0.0.1:3\nPermissionError: [Errno 13] Permission denied: '/x'\n"
	for _, passed := range []string{
		"============ 12 passed, 1 warning in 0.52s ============", "3 passed in 0.2s", "Tests:       4 passed, 4 total\nSnapshots:   0 total\nRan all test suites.",
		" Test Files  1 passed (1)\n      Tests  6 passed (6)", "  4 passing (22ms)", "Ran 5 tests in 0.003s\n\nOK", "ok  \texample.com/git\t0.213s",
		"test result: ok. 5 passed; 0 failed; 0 ignored", "5 examples, 0 failures", "OK (12 tests, 30 assertions)", "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
		"100% tests passed, 0 tests failed out of 4", "1..1\n# tests 1\n# pass 1\n# fail 0", "All tests successful.\nResult: PASS",
	} {
		for _, content := range []string{noise + passed, wrapped(0, noise+passed)} {
			if f := judge("bash", "", content); f.Failed {
				t.Errorf("%q: %+v", passed, f)
			}
		}
		if f := judge("bash", "", wrapped(127, noise+passed+"\nbash: line 3: deploy: command not found")); f.Category != recovery.CommandNotFound {
			t.Errorf("after %q: %+v", passed, f)
		}
	}
	for _, failed := range []string{
		"==== 1 failed, 3 passed in 0.2s ====", "Ran 2 tests in 0.1s\n\nFAILED (errors=1)", "Tests:       1 failed, 3 passed, 4 total", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/p\t0.01s\nFAIL",
		"  3 passing (4ms)\n  1 failing", "[ERROR] Tests run: 3, Failures: 1, Errors: 0", "5 examples, 1 failure", "test result: FAILED. 4 passed; 1 failed", "50% tests passed, 1 tests failed out of 2",
	} {
		if f := judge("bash", "", wrapped(1, noise+failed)); f.Category != recovery.CategoryNone || !f.Failed {
			t.Errorf("%q: %+v", failed, f)
		}
	}
	build := "# example.com/p\n./a.go:3:1: syntax error: non-declaration statement outside function body\nFAIL\texample.com/p [build failed]\nok  \texample.com/q\t0.01s\nFAIL"
	if f := judge("bash", "", wrapped(1, build)); f.Category != recovery.SyntaxError {
		t.Errorf("%+v", f)
	}
}

// Siblings of failures that went unnoticed, and of successes that were none.
func TestSiblings(t *testing.T) {
	for category, contents := range map[recovery.Category][]string{
		recovery.CategoryNone: {
			"lua: a.lua:1: module 'socket' not found:\n\tno file '/usr/share/lua/5.1/socket.lua'", "Can't locate JSON/XS.pm in @INC (you may need to install the JSON::XS module) at a.pl line 1.",
			"requests.exceptions.HTTPError: 400 Client Error: Bad Request for url: http://a.example.com/c", "200 {\n  ok: true\n}", "TimeoutError is raised when x", "63d59b3 Fix the limit of the gateway (429)",
			"docs/a.md:curl: (7) Failed to connect to localhost", "Unknown action items are listed in the plan",
			"Connecting to localhost (localhost)|::1|:80... failed: Connection refused.\nConnecting to localhost (localhost)|127.0.0.1|:80... connected.\nHTTP request sent, awaiting response... 200 OK",
		},
		recovery.ToolRateLimited: {"https://html.example.com/html 202 Ratelimit", "429 {\n  error: 'x',\n}", "failed to list issues: GET " +
			"https://api.example.com/x: 403 API rate limit exceeded for user 1. []", "Error response from daemon: toomanyrequests: Rate exceeded"},
		recovery.PermissionDenied: {"403 {\n  error: 'x',\n}", "failed to create issue: POST " +
			"https://api.example.com/x: 403 Not accessible []", "Access denied: path /etc is outside the allowed base directory", "writeFile failed: Error: EROFS: read-only file system, open '/x'"},
		recovery.NetworkError: {"fatal: unable to access 'https://a.example.com/b.git/': schannel: failed to receive handshake, SSL/TLS " +
			"connection failed", "error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly", "couldn't open socket: connection refused"},
		recovery.ToolNotFound: {"Error: list_dir tool not found", "Unknown action fly", "Action 'a b' don't exist, these are the only available Actions:\n a\n b\n c"},
		recovery.ToolTimeout: {"Execution failed: Call to " +
			"'x' failed for 'tools/call'. Error from mcp-server: request timed out", "✗ Error: Command timed out after 120 seconds", "Error (timeout after 30s): command exceeded 30000ms and was terminated."},
		recovery.InvalidArguments: {"Invalid JSON input for tool", "Error: Invalid JSON in arguments for tool call", "node: --require requires an argument",
			"Invalid mode 'fast'. Valid modes: slow, medium", "Expected string, received number at \"path\"", "String to replace not found in file."},
		recovery.FileNotFound: {"couldn't read file \"a.tcl\": no such file or directory", "Error handling -chdir option: chdir nodir: no " +
			"such file or directory", "yq: error: argument files: can't open 'a.yaml': [Errno 2] No such file or directory: 'a.yaml'", "reader crashed: Error: ENOENT: no such file or directory, open '/x'"},
		recovery.SyntaxError: {"missing close-bracket\n    while executing\n\"puts [x\"", "jinja2.exceptions.TemplateSyntaxError: " +
			"unexpected '}'", "  File \"<unknown>\", line 1, in template\njinja2.exceptions.TemplateSyntaxError: unexpected '}'"},
		recovery.DiskFull: {"Command output was lost: the filesystem at /tmp is full (0MB free)", "write failed with ENOSPC"},
	} {
		for _, content := range contents {
			if f := judge("mytool", "", content); f.Category != category || category != recovery.CategoryNone && f.Confidence < Threshold {
				t.Errorf("%q: %+v, want %s", content, f, category)
			}
		}
	}
}

// What was told wrongly: a report at the end of an output whose exit code is not
// known, errors inside a reader's envelope, editors' words, limits of services.
func TestReports(t *testing.T) {
	progress := "Initializing the backend...\nInitializing provider plugins...\n- Finding hashicorp/aws versions...\n- Finding latest version of hashicorp/random...\n" +
		"- Installing a...\n- Installing b...\n- Installing c...\n- Installing d...\n"
	for _, c := range []struct {
		tool, content string
		want          recovery.Category
	}{
		{"bash", progress + "╷\n│ Error: Failed to query available provider packages\n│ \n│ Could not retrieve the list of versions:\n│ dial tcp: " +
			"lookup registry.example: no such host\n╵", recovery.NetworkError},
		{"bash", progress + "dpkg: error processing archive a.deb (--unpack):\n failed to write (No space left on device)\nErrors were encountered while processing:\n a.deb", recovery.DiskFull},
		{"bash", progress + "Error: UPGRADE FAILED: timed out waiting for the condition", recovery.ToolTimeout},
		{"bash", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\npanic: test timed out after 2s\n\trunning tests:\n\t\tTestB (2s)\n\n" +
			"goroutine 1 [running]:\nFAIL\tx/y\t2.011s\nFAIL", recovery.ToolTimeout},
		{"bash", "gh: API rate limit exceeded for user ID 1234. (HTTP 403)", recovery.ToolRateLimited},
		{"read_file", "<files>\n<file><path>a.ts</path><error>Error reading file: File not found: /w/a.ts</error></file>\n</files>", recovery.FileNotFound},
		{"read_file", "<file><path>a.ts</path><content>ENOENT: no such file</content></file>", recovery.CategoryNone},
		{"edit", "oldString found multiple times and requires more code context to uniquely identify the intended match", recovery.InvalidArguments},
		{"apply_diff", "No sufficiently similar match found at line: 3", recovery.InvalidArguments},
		{"search_and_replace", "Search content not found in file", recovery.InvalidArguments},
		{"edit_file", "Could not find matching text in a.ts", recovery.InvalidArguments},
		{"bash", progress + "error: 2 tests were skipped, continuing\nall went well\n2 packages installed", recovery.CategoryNone},
	} {
		f := judge(c.tool, "", c.content)
		if f.Category != c.want || c.want != recovery.CategoryNone && f.Confidence < Threshold {
			t.Errorf("%q: %s %.2f by %s, want %s", c.content[max(0, len(c.content)-120):], f.Category, f.Confidence, f.Rule, c.want)
		}
	}
}

// Behind a pipe that hides the exit code, structure that only a failing program prints
// counts; a heading leaves it to the line below to say why.
func TestStructureBehindPipes(t *testing.T) {
	thrown := "node:fs:573\n  return binding.open(\n                 ^\n\nError: ENOENT: no such file or directory, open 'plan.json'\n    at Object.openSync (node:fs:573:18)"
	chain := "warning: spurious network error (1 try remaining): timeout\nerror: failed to fetch the index\n\nCaused by:\n  download of config.json failed\n\nCaused by:\n  [6] Could not resolve host: index.example.com"
	for _, c := range []struct {
		tool, command, content string
		want                   recovery.Category
		failed                 bool
	}{
		{"bash", "node a.js 2>&1 | head", wrapped(0, thrown), recovery.FileNotFound, true},
		{"bash", "cat crash.log", wrapped(0, thrown), recovery.CategoryNone, false},
		{"bash", "", wrapped(0, thrown+"\n    at main (a.js:3:1)\nstarted again\nall went well"), recovery.CategoryNone, false},
		{"bash", "cargo build 2>&1 | tail -8", wrapped(0, chain), recovery.NetworkError, true},
		{"bash", "cargo build -q 2>&1 | tail -8", wrapped(0, chain[strings.Index(chain, "error: "):]), recovery.NetworkError, true},
		{"bash", "cat build.log", wrapped(0, chain), recovery.CategoryNone, false},
		{"bash", "", wrapped(0, chain+"\n3 crates built"), recovery.CategoryNone, false},
		{"bash", "", wrapped(1, "Could not parse plan.wgsl:\nerror: no definition in scope for identifier: `x`"), recovery.CategoryNone, true},
		{"bash", "", wrapped(1, "Could not parse plan.wgsl:\nerror: expected `)`, found `}`"), recovery.SyntaxError, true},
		{"move_tree", "", "Function move_tree not found in the toolkit", recovery.ToolNotFound, true},
		{"ask_expert", "", "Function move_tree not found in the toolkit", recovery.CategoryNone, false},
		{"bash", "git blame a.py", "fatal: no such path 'a.py' in HEAD", recovery.FileNotFound, true},
		{"bash", "cat a.log", "fatal: no such path 'a.py' in HEAD", recovery.CategoryNone, false},
	} {
		f := judge(c.tool, command(c.command), c.content)
		if f.Failed != c.failed || f.Category != c.want || c.want != recovery.CategoryNone && f.Confidence < Threshold {
			t.Errorf("%q: %+v, want %s", c.content, f, c.want)
		}
	}
}

// A client that says beside a result that its call failed is believed where the result itself says nothing.
func TestErrorFlag(t *testing.T) {
	for content, want := range map[string]bool{
		"ENOENT: no such file or directory, open '/a'": true, "The user doesn't want to proceed.": true, "fatal: not a git repository": true, "": true, `{"exit_code":0,"output":"ok"}`: false,
	} {
		f := Judge(recovery.ToolResult{Tool: "Bash", Arguments: `{"command":"make"}`, Content: content, Failed: true})
		if f.Failed != want {
			t.Errorf("%q: failed %v by %s", content, f.Failed, f.Rule)
		}
	}
	if f := Judge(recovery.ToolResult{Tool: "Bash", Arguments: `{"command":"make"}`, Content: "all good"}); f.Failed {
		t.Errorf("without the flag it failed by %s", f.Rule)
	}
}
