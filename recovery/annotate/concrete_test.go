package annotate_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

// TestConcreteStep checks, for realistic conversations of each category, that
// the note names the step that the conversation itself shows.
func TestConcreteStep(t *testing.T) {
	edit := tool("edit_file", "Edit a file.", "*path", "string", "*old_text", "string", "*new_text", "string", "replace_all", "boolean", "mode", `{"type":"string","enum":["once","all"]}`)
	slow := tool("bash", "Run a shell command.", "*command", "string", "timeout_ms", "integer", "run_in_background", "boolean")
	for _, c := range []struct {
		name     string
		talk     *talk
		category recovery.Category
		risky    bool
		want     []string // all of these are in the note
		not      []string // none of these is
	}{
		{"file by its name only", agent(bash, read).run("find . -name '*.py' | head", "./src/app/settings.py\n./src/app/models.py\n").call("read",
			object{"path": "settings.py"}, "Error: ENOENT: no such file "+
				"or directory, open 'settings.py'"),
			recovery.FileNotFound, false, []string{"`src/app/settings.py`"}, []string{"models.py"}},
		{"file in the wrong directory", agent(bash, read).run("cd /repo && git ls-files", "packages/a/index.ts\npackages/b/src/tool.ts\n").run("cat packages/a/src/tool.ts", "cat: packages/a/src/tool.ts: "+
			"No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"`/repo/packages/b/src/tool.ts`"}, nil},
		{"name in a listing", agent(bash, ls, read).call("ls", object{"path": "lib/util"}, "dates.go\nstrings.go\n").call("read", object{"path": "lib/dates.go"}, "File not found: lib/dates.go"),
			recovery.FileNotFound, false, []string{"`lib/util/dates.go`"}, nil},
		{"name in the output of ls", agent(bash).run("ls docs/guide", "intro.md\nsetup.md\n").run("cat docs/setup.md", "cat: docs/setup.md: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"`docs/guide/setup.md`"}, nil},
		{"capitals", agent(bash).run("ls", "Makefile\nREADME.md\nsrc\n").run("cat readme.md", "cat: readme.md: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"Capitals count", "`README.md`"}, nil},
		{"nearest name", agent(bash).run("ls src", "handlers.py\nviews.py\n").run("cat src/handler.py", "cat: src/handler.py: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"closest to `handler.py`", "`src/handlers.py`"}, nil},
		{"a denial is no sight", agent(bash, read).run("cat old/conf.yml", "cat: old/conf.yml: No such file or directory\n\nCommand exited "+
			"with code 1").run("cat conf.yml", "cat: conf.yml: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"Search for `conf.yml`"}, []string{"old/conf.yml"}},
		{"a path with spaces", agent(bash).run("find . -name '*.txt'", "./My Documents/old/notes.txt\n./src/a.txt\n").run("cat notes.txt", "cat: notes.txt: No such file "+
			"or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"`My Documents/old/notes.txt`"}, []string{"`Documents"}},
		{"a name with spaces", agent(bash, read).run("find . -name '*.txt'", "./docs/final notes.txt\n").call("read", object{"path": "final notes.txt"}, "Error: ENOENT: no such file or directory, open 'final notes.txt'"),
			recovery.FileNotFound, false, []string{"`docs/final notes.txt`"}, nil},
		{"searched in vain", agent(bash, read, tool("glob", "Find files.", "*pattern", "string")).call("glob", object{"pattern": "**/settings.py"}, "No files found").call("read", object{"path": "app/settings.py"}, "Error: ENOENT: no such file or directory, open 'app/settings.py'"),
			recovery.FileNotFound, false, []string{"A search for `settings.py` found nothing: list `app`"}, []string{"Search for"}},
		{"working directory", agent(bash).run("cat nope/x.txt", "cat: nope/x.txt: No such file or directory\n[Current working directory: /workspace/demo]\n[Command finished with exit code 1]"),
			recovery.FileNotFound, false, []string{"list `nope`"}, nil},
		{"earlier successful read", agent(bash, read).call("read", object{"path": "/w/pkg/core/engine.rs"}, "fn main() {}\n").call("read", object{"path": "/w/core/engine.rs"}, "Error: ENOENT: no such file or directory, open '/w/core/engine.rs'"),
			recovery.FileNotFound, false, []string{"`/w/pkg/core/engine.rs`"}, nil},
		{"file that the person named", agent(bash, read).user("The bug is in services/billing/invoice.rb I think").call("read", object{"path": "invoice.rb"}, "Error: ENOENT: no such file or directory, open 'invoice.rb'"),
			recovery.FileNotFound, false, []string{"`services/billing/invoice.rb`"}, nil},

		{"the rest of a path is no path", agent(bash).user("Run cp $(npm root -g)/@x/agent/dark.json ~/themes/").run("cat dark.json", "cat: dark.json: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"Search for `dark.json`"}, []string{"@x/agent"}},
		{"a match whose text denies", agent(bash).run("grep -rn Fatal .", "./cmd/tool/run.go:12: log.Fatal(\"config not found\")\n").run("cat run.go", "cat: run.go: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"`cmd/tool/run.go`"}, nil},
		{"a tool that finds files", agent(bash, grep, tool("glob", "Find files.", "*pattern", "string")).run("cat notes.md", "cat: notes.md: No such file or directory\n\nCommand exited with code 1"),
			recovery.FileNotFound, false, []string{"Search for `notes.md` with `glob`"}, nil},

		{"python3 for python", agent(bash).run("python3 -m pytest -q tests", "5 passed in 0.2s").run("python app.py", "/bin/bash: line 1: python: command not found\n\nCommand exited with code 127"),
			recovery.CommandNotFound, false, []string{"`python3` in place of `python`"}, nil},
		{"nothing seen", agent(bash).run("docker-compose up -d", "/bin/bash: line 1: docker-compose: command not found\n"),
			recovery.CommandNotFound, false, []string{"`docker compose` in place of `docker-compose`"}, []string{"1. Install"}},
		{"misspelt", agent(bash).run("pyhton3 app.py", "/bin/bash: line 1: pyhton3: command not found\n"),
			recovery.CommandNotFound, false, []string{"`python3` is probably what `pyhton3` should be"}, nil},
		{"in the project", agent(bash).run("ls -d node_modules/.bin/*", "node_modules/.bin/knip\nnode_modules/.bin/tsc\n").run("knip", "/bin/bash: line 1: knip: command not found\n"),
			recovery.CommandNotFound, false, []string{"`node_modules/.bin/knip`"}, nil},
		{"no elevated command as an example", agent(bash).run("sudo python3 x.py", "done").run("python x.py", "/bin/bash: line 1: python: command not found\n"),
			recovery.CommandNotFound, false, []string{"`python3` in place of `python`"}, []string{"sudo"}},

		{"another tool's name", agent(bash, read, write, grep).call("read_files", object{"path": "a"}, "MCP error -32602: Tool read_files not found"),
			recovery.ToolNotFound, false, []string{"Call `read` in place of `read_files`"}, nil},
		{"a shell by another name", agent(read, tool("run_terminal_cmd", "Run a terminal command.", "*command", "string")).call("execute_bash", object{"command": "ls"}, "MCP error -32602: Tool execute_bash not found"),
			recovery.ToolNotFound, false, []string{"Call `run_terminal_cmd` in place of `execute_bash`"}, nil},
		{"a search of the web", agent(tool("web_search", "Search the web.", "*query", "string"), bash).call("searchWeb", object{"q": "x"}, "Model tried to call unavailable tool 'searchWeb'. Available tools: web_search, bash."),
			recovery.ToolNotFound, false, []string{"Call `web_search` in place of `searchWeb`"}, nil},

		{"directory that was written before", agent(bash, write).call("write", object{"path": "/workspace/out/a.txt", "content": "x"}, "Wrote 1 byte.").run("echo x > /etc/app.conf", "/bin/bash: line 1: /etc/app.conf: Permission denied\n\nCommand exited with code 1"),
			recovery.PermissionDenied, false, []string{"Work in `/workspace/out`", "`/etc/app.conf`"}, nil},
		{"redirection that worked", agent(bash).run("mkdir -p build/tmp && echo 1 > build/tmp/x", "").run("mkdir /opt/app", "mkdir: cannot create directory ‘/opt/app’: Permission denied\n\nCommand exited with code 1"),
			recovery.PermissionDenied, false, []string{"Work in `build/tmp`"}, nil},
		{"a key that a host refuses", agent(bash).run("git clone git@git.example.com:acme/tools.git", "Cloning into 'tools'...\ngit@git.example.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nCommand exited with code 128"),
			recovery.PermissionDenied, false, []string{"`git.example.com` refused the account", "`ssh -T git@git.example.com`"}, []string{"ls -ld", "Work in"}},
		{"a right that a cloud refuses", agent(bash).run("aws s3 ls s3://prod-data", "An error occurred (AccessDenied) when calling the ListObjectsV2 operation: User: arn:aws:iam::123:user/ci is not authorized to perform: s3:ListBucket on resource: arn:aws:s3:::prod-data\n\nCommand exited with code 254"),
			recovery.PermissionDenied, false, []string{"AWS refused the account", "`aws sts get-caller-identity`"}, []string{"ls -ld", "prod-data"}},
		{"a socket of Docker", agent(bash).run("docker ps", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get \"http://%2Fvar%2Frun%2Fdocker.sock/v1.24/containers/json\": dial unix /var/run/docker.sock: connect: permission denied\n\nCommand exited with code 1"),
			recovery.PermissionDenied, false, []string{"Docker refused the account"}, []string{"ls -ld", "%2F"}},
		{"script that is not executable", agent(bash).run("./run.sh --fast", "/bin/bash: line 1: ./run.sh: Permission denied\n\nCommand exited with code 126"),
			recovery.PermissionDenied, false, []string{"run `bash ./run.sh --fast` instead"}, nil},

		{"a click in a page", agent(tool("browser_click", "Click an element.", "*element", "string"), tool("browser_snapshot", "Show the page."), bash).call("browser_click", object{"element": "Submit"}, "Error: locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for locator('aria-ref=e12')"),
			recovery.ToolTimeout, false, []string{"look at the page with `browser_snapshot`"}, []string{"one file", "Write the output"}},
		{"parameter for the time", agent(slow).call("bash", object{"command": "pytest -q", "timeout_ms": 2000}, "Command timed out after 2 seconds\n"),
			recovery.ToolTimeout, false, []string{"set `timeout_ms` higher once", "pytest path/to/test_one.py"}, nil},
		{"no parameter for the time", agent(tool("sh", "Run a shell command.", "*command", "string")).call("sh", object{"command": "go test ./... | tail -5"}, "panic: test timed out after 1s\n"),
			recovery.ToolTimeout, false, []string{"go test ./one/package"}, nil},

		{"misspelt parameter", agent(edit).call("edit_file", object{"path": "a.go", "old_txt": "a", "new_text": "b"}, `MCP error -32602: Input validation error: Invalid arguments for tool edit_file: Required at "old_text"`),
			recovery.InvalidArguments, false, []string{"The required parameter `old_text` is missing (the call says `old_txt`)"}, nil},
		{"wrong type", agent(edit).call("edit_file", object{"path": "a.go", "old_text": "a", "new_text": "b", "replace_all": "yes"}, `Invalid arguments for tool edit_file: replace_all must be boolean`),
			recovery.InvalidArguments, false, []string{"`replace_all` must be of type boolean, and the call gives a string"}, nil},
		{"value that is not allowed", agent(edit).call("edit_file", object{"path": "a.go", "old_text": "a", "new_text": "b", "mode": "twice"}, `Invalid arguments for tool edit_file: mode must be equal to one of the allowed values`),
			recovery.InvalidArguments, false, []string{"`mode` must be one of `once` or `all`"}, nil},
		{"option", agent(bash).run("git commit --messgae x", "error: unknown option `messgae'\nusage: git commit [-a] [--amend] [--message <m>]\n\nCommand exited with code 129"),
			recovery.InvalidArguments, false, []string{"no option `--messgae` of `git`; it has `--message`"}, nil},
		{"choice", agent(bash).run("python3 cli.py --mode turbo", "usage: cli.py [-h] [--mode {fast,slow}]\ncli.py: error: argument --mode: "+
			"invalid choice: 'turbo' (choose from 'fast', 'slow')\n\nCommand exited with code 2"),
			recovery.InvalidArguments, false, []string{"allowed values: `'fast', 'slow'`"}, nil},

		{"file and line", agent(bash, write).run("python3 bad.py", "  File \"/repo/bad.py\", line 7\n    def f(:\n          ^\nSyntaxError: invalid syntax\n\nCommand exited with code 1"),
			recovery.SyntaxError, false, []string{"`/repo/bad.py:7`"}, []string{"with `write`", "command line"}},
		{"code in a command line", agent(bash, write).run("python3 -c 'x = = 1'", "  File \"<string>\", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n\nCommand exited with code 1"),
			recovery.SyntaxError, false, []string{"Write the code to a file with `write`", "passing it to `python3`"}, nil},
		{"file of a YAML error", agent(bash).run("python3 load.py", "Traceback (most recent call last):\n  File \"/repo/load.py\", line 3, in "+
			"<module>\nyaml.scanner.ScannerError: mapping values are not allowed here\n  in \"conf/app.yaml\", line 4, column 9\n\nCommand exited with code 1"),
			recovery.SyntaxError, false, []string{"`conf/app.yaml:4`"}, []string{"load.py"}},
		{"file of a YAML error that states the line", agent(bash).run("docker compose -f deploy/compose.yml up", "yaml: line 7: mapping values "+
			"are not allowed in this context\n\nCommand exited with code 15"),
			recovery.SyntaxError, false, []string{"`deploy/compose.yml:7`"}, nil},
		{"not in the library", agent(bash, write).run("python3 x.py", "Traceback (most recent call last):\n  File \"/repo/x.py\", line 3, in "+
			"<module>\n    ast.parse('x = = 1')\n  File \"/usr/lib/python3.11/ast.py\", line 50, in parse\n    return compile(source)\n  File "+
			"\"<unknown>\", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n\nCommand exited with code 1"),
			recovery.SyntaxError, false, []string{"Look at `line 1`"}, []string{"ast.py"}},

		{"this machine", agent(bash).run("curl -sS http://127.0.0.1:9/", "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server\n\nCommand exited with code 7"),
			recovery.NetworkError, false, []string{"is this machine: see whether the service was started"}, nil},

		{"wait in words", agent(bash).run("curl -sS https://api.example.com/x", `{"error": {"message": "Rate limit reached for requests. Limit: 60`+
			` / min. Please try again in 12s.", "code": "rate_limit_exceeded"}}`),
			recovery.ToolRateLimited, false, []string{"Wait 12 seconds", "`sleep 12`"}, nil},
		{"wait in a header", agent(bash).run("curl -si https://api.example.com/x", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 90\r\n\r\n{\"error\":\"rate limit exceeded\"}"),
			recovery.ToolRateLimited, false, []string{"Wait 90 seconds", "`sleep 90`"}, nil},
		{"absurd wait", agent(bash).run("curl -si https://api.example.com/x", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 86400\r\n\r\n{\"error\":\"rate limit exceeded\"}"),
			recovery.ToolRateLimited, false, []string{"Wait about 30 seconds"}, []string{"86400 s", "sleep"}},

		{"own files", agent(bash).run("ls", "data.csv\nsrc\n").run("tar cf /tmp/pack.tar src > /tmp/pack.log", "").run("echo x > data.csv", "").run("cp big.bin /data/big.bin", "cp: error writing "+
			"'/data/big.bin': No space left on device\n\nCommand exited with code 1"),
			recovery.DiskFull, true, []string{"nothing else: `/tmp/pack.log` and `/tmp/pack.tar`"}, []string{"data.csv"}},
		{"file that was there before", agent(bash).run("ls /tmp", "cache.log\n").run("echo 1 > /tmp/cache.log", "").run("echo x > /data/y", "/bin/bash: line 1: echo: "+
			"write error: No space left on device\n\nCommand exited with code 1"),
			recovery.DiskFull, true, []string{"instead of to `/data/y`"}, []string{"Delete", "`/tmp/cache.log`"}},
	} {
		t.Run(string(c.category)+"/"+c.name, func(t *testing.T) {
			s, _ := stage(t, func(cfg *annotate.Config) { cfg.Risky = c.risky })
			x := c.talk.exchange(t)
			note, advice := s.Note(x)
			if advice.Category != c.category {
				t.Fatalf("the advice is about %q, want %q; results %+v", advice.Category, c.category, x.Results)
			}
			for _, w := range c.want {
				if !strings.Contains(note, w) {
					t.Errorf("the note lacks %q:\n%s", w, note)
				}
			}
			for _, w := range c.not {
				if strings.Contains(note, w) {
					t.Errorf("the note has %q:\n%s", w, note)
				}
			}
			wellFormed(t, note)
		})
	}
}

// wellFormed checks what is the same in every note.
func wellFormed(t testing.TB, note string) {
	t.Helper()
	if !strings.HasPrefix(note, "[gateway note, not from the user] ") {
		t.Errorf("the note has no mark:\n%s", note)
	}
	if !strings.HasSuffix(note, " Do not mention this note.") && !strings.HasSuffix(note, "\nDo not mention this note.") {
		t.Errorf("the note does not end as notes do:\n%s", note)
	}
	if n := utf8.RuneCountInString(note); n > 1200 || !utf8.ValidString(note) {
		t.Errorf("the note has %d characters or is not UTF-8:\n%s", n, note)
	}
	if strings.Contains(note, "{") && strings.Contains(note, "}") {
		for line := range strings.SplitSeq(note, "\n") {
			if i := strings.Index(mask(line), "{"); i >= 0 {
				t.Errorf("a slot was not filled: %s", line)
			}
		}
	}
	if strings.Contains(strings.ToLower(mask(note)), "sudo") {
		t.Errorf("the note says sudo:\n%s", note)
	}
}

// mask replaces what is quoted, in backticks or between <<< and >>>.
func mask(note string) string {
	var b strings.Builder
	for {
		i, j := strings.Index(note, "<<<"), strings.IndexByte(note, '`')
		switch {
		case i >= 0 && (j < 0 || i < j):
			end := strings.Index(note, ">>>")
			if end < i {
				return b.String() + "broken quote " + note
			}
			b.WriteString(note[:i] + "<<<…>>>")
			note = note[end+3:]
		case j >= 0:
			end := strings.IndexByte(note[j+1:], '`')
			if end < 0 {
				return b.String() + "broken quote " + note
			}
			b.WriteString(note[:j] + "`…`")
			note = note[j+1+end+1:]
		default:
			return b.String() + note
		}
	}
}

// TestConcreteAgain: the second time another strategy is proposed, and what the
// conversation shows is not forgotten.
func TestConcreteAgain(t *testing.T) {
	const out = "cat: db.go: No such file or directory\n\nCommand exited with code 1"
	s, _ := stage(t, nil)
	x := agent(bash).run("find . -name '*.go'", "./cmd/main.go\n./internal/db/db.go\n").run("cat db.go", out).run("cat db.go", out).exchange(t)
	one, a := s.Note(x)
	x.Turn.Seen = 2
	two, b := s.Note(x)
	if a.Strategies[0] != "verify_path" || b.Strategies[0] != "create_if_appropriate" || !strings.Contains(two, "`internal/db/db.go`") || !strings.Contains(two, "Proposed before: verify path.") {
		t.Errorf("%v\n%s\n%v\n%s", a.Strategies, one, b.Strategies, two)
	}
	x.Turn.Seen = 3
	if three, c := s.Note(x); len(c.Strategies) != 1 || !strings.Contains(three, "ask the user to say whether `internal/db/db.go` is meant") {
		t.Errorf("%v\n%s", c.Strategies, three)
	}
}

// TestTextProtocol: an agent without tools has a shell, and what it did stands in texts.
func TestTextProtocol(t *testing.T) {
	c := agent()
	c.messages[0]["content"] = "You have a special interface. Your command goes into triple backticks; one command at a time."
	c.says("Let me look.\n```\nls src\n```").user("main.py\nhelper.py\n(Current directory: /repo)\nbash-$")
	c.says("Now read it.\n```\ncat helper.py\n```").user("cat: helper.py: No such file or directory\n(Current directory: /repo)\nbash-$")
	s, _ := stage(t, nil)
	note, advice := s.Note(c.exchange(t))
	if advice.Category != recovery.FileNotFound || !strings.Contains(note, "`src/helper.py`") {
		t.Errorf("%+v\n%s", advice, note)
	}
}

// TestToolsFromHistory: a history with calls may come without definitions.
func TestToolsFromHistory(t *testing.T) {
	s, _ := stage(t, nil)
	note, advice := s.Note(agent().run("poetry install", "/bin/bash: line 1: poetry: command not found\n").exchange(t))
	if fmt.Sprint(advice.Strategies) != "[alternative_command ask_user]" || !strings.Contains(note, "`python3 -m poetry`") {
		t.Errorf("%+v\n%s", advice, note)
	}
}

// TestNestedListings: the directories of a name may stand in lines above it.
func TestNestedListings(t *testing.T) {
	const out = "cat: deep.go: No such file or directory\n\nCommand exited with code 1"
	s, _ := stage(t, nil)
	for listing, want := range map[string]string{
		".\n├── cmd\n│   └── main.go\n└── pkg\n    ├── a\n    │   └── x.go\n    └── b\n        └── deep.go\n\n3 directories, 3 files": "`pkg/b/deep.go`",
		"pkg/\n  a/\n    x.go\n  b/\n    deep.go\ncmd/\n  main.go\n": "`pkg/b/deep.go`",
		"- /srv/app/\n  - pkg/\n    - x.go\n    - deep.go\n":         "`/srv/app/pkg/deep.go`",
		"Untracked files:\n  (use \"add\")\n\tdeep.go\n\tx.go\n":     "",
		"pkg/b/deep.go\npkg/a/x.go\n":                                "`pkg/b/deep.go`",
	} {
		note, _ := s.Note(agent(bash).run("tree", listing).run("cat deep.go", out).exchange(t))
		if got := strings.Contains(note, "Earlier results show "+want+":"); got != (want != "") {
			t.Errorf("%s\n%s\n%s", listing, want, note)
		}
	}
}
