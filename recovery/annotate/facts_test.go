package annotate_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// seen is an exchange as the stage before this one leaves it.
func (c *talk) seen(t testing.TB) *recovery.Exchange {
	t.Helper()
	b := recoverytest.Parse(t, c.bytes(), transcript.Chat)
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: b, Model: "m", Mode: recovery.ModeAct}, Conversation: recovery.Conversation{Session: "s"}}
	if err := inspect.NewStage(inspect.Defaults(), toolRules, &recoverytest.Observer{}).Prepare(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	return x
}

// The first time that something fails a note has a fact that the result does not have, or
// there is no note.
func TestFacts(t *testing.T) {
	const ended = "\n\nExit code: 1"
	sql := tool("execute_sql", "Run a query.", "*query", "string")
	edited := func(name, out, old string) string {
		return "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999 " + name + "\n\nThis is how your edit would have looked if applied\n-----\n" + out +
			"\n-----\n\nThis is the original code before your edit\n-----\n" + old + "\n-----\nYour changes have NOT been applied.\n(Open file: /p/a.py)\n(Current directory: /p)\nbash-$"
	}
	edit := func(name, out string) string { return edited(name, out, "") }
	timedOut := func(line, out string) string {
		return "The last command <command>" + line + "</command> timed out and has been killed.\nThe output of the command was:\n <output>\n" + out +
			"\n</output>\nPlease try another command and make sure to avoid those requiring interactive input."
	}
	for _, c := range []struct {
		name string
		talk *talk
		want string // "" is no note
	}{
		{"no fact", agent(bash).run("cat a/b.txt", "cat: a/b.txt: No such file or directory"+ended), ""},
		{"a path that a search printed", agent(bash, read).run("find . -name parser.go", "./internal/core/parser.go\n").call("read", object{"path": "parser.go"}, "Error: ENOENT: no such file or directory, open 'parser.go'"), "at `internal/core/parser.go`"},
		{"the only directory of a listing", agent(bash).run("ls -F", "fasterxml/\n").run("cd fastjson/", "/bin/bash: line 17: cd: fastjson/: No such file or directory\nExit code: 1"), "has `fasterxml` and no `fastjson`. Run `cd fasterxml/`"},
		{"a near name in the same result", agent(bash).run("cd fastxml\nls -F", "/bin/bash: line 17: cd: fastxml: No such file or directory\nfasterxml/\nfaker/\nExit code: 1"), "has `fasterxml` and no `fastxml`. Run `cd fasterxml`"},
		{"a near name in a long listing", agent(bash).run("ls -la", "total 8\ndrwxr-xr-x 2 root root 4096 Aug 14 06:03 .\n-rw-r--r-- 1 root root 336 Aug 14 06:03 settings.py\n").run("cat setting.py", "cat: setting.py: No such file or directory"+ended), "has `settings.py` and no `setting.py`"},
		{"a sibling", agent(bash).run("ls", "test_a.py\nv12.py\n").run("cat test_c.py v1.py", "cat: test_c.py: No such file or directory"+ended), ""},
		{"two exchanged letters", agent(bash).run("ls", "utils.py\nmain.py\n").run("cat utlis.py", "cat: utlis.py: No such file or directory"+ended), "has `utils.py` and no `utlis.py`"},
		{"two near names", agent(bash).run("ls", "settings.py\nsettings.pyc\n").run("cat setting.py", "cat: setting.py: No such file or directory"+ended), ""},
		{"a listing of another directory", agent(bash).run("ls -F", "fasterxml/\n").run("cd fasterxml", "").run("cd fastjson", "/bin/bash: line 17: cd: fastjson: No such file or directory\nExit code: 1"), ""},
		{"two such paths", agent(bash, read).run("find . -name parser.go", "./a/parser.go\n./b/parser.go\n").call("read", object{"path": "parser.go"}, "Error: ENOENT: no such file or directory, open 'parser.go'"), ""},
		{"its folder agrees", agent(bash).run("git status", "modified: web/core/parser.go\n").run("cat core/parser.go", "cat: core/parser.go: No such file or directory"+ended), "at `web/core/parser.go`"},
		{"only its name agrees", agent(bash).run("git status", "modified: web/parser.go\n").run("cat core/parser.go", "cat: core/parser.go: No such file or directory"+ended), ""},
		{"another root", agent(bash).run("find / -name parser.go", "/usr/share/core/parser.go\n").run("cat /app/core/parser.go", "cat: /app/core/parser.go: No such file or directory"+ended), ""},
		{"a listing of PowerShell", agent(tool("powershell", "Run it.", "*command", "string")).call("powershell", object{"command": "Get-ChildItem -Recurse -Filter appsettings.json"},
			"    Directory: C:\\src\\Web\\Config\n\n-a----  25.11.2026  10:01  811 appsettings.json").call("powershell", object{"command": "Get-Content appsettings.json"},
			"Get-Content : Cannot find path 'C:\\src\\appsettings.json' because it does not exist."), "`C:\\src\\Web\\Config\\appsettings.json`"},
		{"a repository without git", agent(bash).run("git clone https://github.com/acme/app.git", "bash: git: command not found\nExit code: 127"), "curl -L https://github.com/acme/app/archive/HEAD.tar.gz | tar xz"},
		{"no curl either", agent(bash).run("curl x", "bash: curl: command not found\nExit code: 127").run("git clone https://github.com/acme/app.git", "bash: git: command not found\nExit code: 127"), ""},
		{"no systemd", agent(bash).run("systemctl start nginx", "/bin/sh: 1: systemctl: not found\nExit code: 127"), "`service nginx start`"},
		{"python3 for python", agent(bash).run("python a.py", "bash: python: command not found\nExit code: 127"), "`python3` usually does what `python` does, if it is here"},
		{"python3 is missing as well", agent(bash).run("python3 a.py", "bash: python3: command not found\nExit code: 127").run("python a.py", "bash: python: command not found\nExit code: 127"), ""},
		{"prose", agent(bash).run("DISCUSSION\nThe shell seems broken.", "/bin/bash: line 12: DISCUSSION: command not found\n/bin/bash: line 13: The: command not found"), "holds prose"},
		{"prose that does not parse", agent(bash).run("DISCUSSION\nThere's an issue here.", "/bin/bash: line 2: unexpected EOF while looking for matching `''\n/bin/bash: line 4: syntax error: unexpected end of file"), "holds prose"},
		{"what an earlier result printed", agent(bash).run("[File: /a/b.py (72 lines total)]\n1:import (", "/bin/bash: line 1: syntax error near unexpected token `('\n/bin/bash: line 1: `[File: /a/b.py (72 lines total)]'"), "an earlier result printed"},
		{"a here-document that another line joins", agent(bash).run("python - <<'PY'\nprint(1)\nPY\n&& git diff", "1\nbash: -c: line 4: syntax error near unexpected token `&&'\nbash: -c: line 4: `&& git diff'\nExit code: 2"), "Put `git diff` on that line without `&&`"},
		{"a here-document that does not end", agent(bash).run("python - <<'PY'\nprint(1)\nPY && git diff", "bash: line 3: warning: here-document at line 1 delimited by end-of-file (wanted `PY')\n  File \"<stdin>\", line 2\n    PY && git diff\n       ^\nSyntaxError: invalid syntax\nExit code: 1"), "`PY && …` does not end"},
		{"a here-document that another one ends", agent(bash).run("python - <<'PY'\nprint(1)\nPY && python - <<'PY'\nprint(2)\nPY", "  File \"<stdin>\", line 2\n    PY && python - <<'PY'\n       ^\nSyntaxError: invalid syntax\nExit code: 1"), "`PY && …` does not end"},
		{"the patch program of another agent", agent(bash).run("applypatch <<'PATCH'\n*** Begin Patch\nPATCH", "bash: line 1: applypatch: command not found\nExit code: 127"), "`git apply` with a unified diff"},
		{"an operator without a here-document", agent(bash).run("make\n&& make test", "bash: -c: line 2: syntax error near unexpected token `&&'\nbash: -c: line 2: `&& make test'\nExit code: 2"), ""},
		{"rg with options of its own", agent(bash).run("rg -n -S 'a|b' src", "bash: line 1: rg: command not found\nExit code: 127"), "`grep -rnE` usually does what `rg` does.\nKeep going"},
		{"a module whose program is missing", agent(bash).run("pytest -q tests", "bash: line 1: pytest: command not found\nExit code: 127"), ""},
		{"a file that was listed and is gone", agent(bash).run("ls -la a.tar.gz", "-rw-r--r-- 1 root root 336 Aug 14 06:03 a.tar.gz").run("rm a.tar.gz && ls -la a.tar.gz", "ls: cannot access 'a.tar.gz': No such file or directory\nExit code: 2"), ""},
		{"no sudo", agent(bash).run("sudo apt-get update", "bash: sudo: command not found\nExit code: 127").run("sudo apt-get install -y jq", "bash: sudo: command not found\nExit code: 127"), "Without `sudo` the same command runs as the current user"},
		{"a ping without an end", agent(bash).run("ping example.com", timedOut("ping example.com", "64 bytes from 93.184.216.34: icmp_seq=1 ttl=56 time=11 ms")), "`ping -c 3 example.com`"},
		{"a log that is followed", agent(bash).run("tail -f app.log", timedOut("tail -f app.log", "ready")), "without `-f`"},
		{"a server in the foreground", agent(bash).run("cd /w && python3 -m http.server 8000", timedOut("cd /w && python3 -m http.server 8000", "")), "`cd /w && nohup python3 -m http.server 8000 > /tmp/server.log 2>&1 &`"},
		{"a time limit of the program's own", agent(bash).run("curl -m 5 http://10.0.0.1/a", "curl: (28) Connection timed out after 5001 milliseconds\nExit code: 28"), ""},
		{"a module that is missing", agent(bash).run("python3 explore.py", "Traceback (most recent call last):\n  File \"/app/explore.py\", line 1, in <module>\n    import numpy\nModuleNotFoundError: No module named 'numpy'"+ended), ""},
		{"a missing program with another behind it", agent(bash).run("ps aux", "/bin/sh: 1: ps: not found\nExit code: 127").run("netstat -t", "/bin/sh: 1: netstat: not found\nExit code: 127").
			run("pgrep nginx && netstat -t || ss -t", "<returncode>0</returncode>\n<output>\n/bin/sh: 1: pgrep: not found\nLISTEN 0 511 0.0.0.0:8080\n</output>"), ""},
		{"a blank is missing", agent(bash).run("find. -name pom.xml", "/bin/bash: line 12: find.: command not found\nExit code: 127"), "`find .` in place of `find.`"},
		{"a stand-in that nobody saw", agent(bash).run("wget -O a https://example.com/a", "/bin/sh: 1: wget: not found\nExit code: 127"), ""},
		{"a range that is too short", agent(bash).run("edit 11:12\ndef f(x):\n    return x\nend_of_edit", edited("IndentationError: unexpected indent", "11:def f(x):\n12:    return x\n13:        elif y:\n14:            pass", "11:def f(x):\n12:    if x:\n13:        elif y:\n14:            pass")), "The range 11:12 is too short: line 13"},
		{"a range that takes the next head with it", agent(bash).run("edit 19:21\ndef f(x):\n    return x\nend_of_edit", edited("IndentationError: unexpected indent", "19:def f(x):\n20:    return x\n21:    d = load()", "19:def f(x):\n20:    return 1\n21:def g():\n22:    d = load()")), ""},
		{"a function for another file", agent(bash).run("edit 1:2\nimport random\ndef row(h):\n    return 1\nend_of_edit", edited("IndentationError: unexpected indent", "1:import random\n2:def row(h):\n3:    return 1\n4:    return 0", "1:def column(h):\n2:    n = 1\n3:    return 0")), ""},
		{"imports for another file", agent(bash).run("edit 12:13\nfrom a import b\nfrom c import d\nend_of_edit", edited("IndentationError: unexpected indent", "11:def f(x):\n12:from a import b\n13:from c import d", "11:def f(x):\n12:        x = 1\n13:        y = 2")), ""},
		{"a comment in place of a block", agent(bash).run("edit 102:102\n# report()\nend_of_edit", edited("IndentationError: expected an indented block after 'if' statement on line 101", "101:    if x:\n102:# report()\n103:    return", "101:    if x:\n102:        report()\n103:    return")), ""},
		{"a range that is deleted", agent(bash).run("edit 198:198\nend_of_edit", edited("IndentationError: unexpected indent", "197:    p.add(\n198:        default=2)", "197:    p.add(\n198:        '--bs',\n199:        default=2)")), ""},
		{"a line with its number", agent(bash).run("edit 107:107\n107:     e = 1\nend_of_edit", edited("IndentationError: unexpected indent", "106:        d = 1\n107:107:     e = 1\n108:        f = 1", "106:        d = 1\n107:        e = 0\n108:        f = 1")), ""},
		{"one line for a call of many", agent(bash).run("edit 90:93\n    d = 1\nend_of_edit", edited("IndentationError: unexpected indent", "89:    e = g(\n90:    d = 1\n91:        )", "89:    e = g(\n90:        a,\n91:        b,\n92:        c,\n93:        d,\n94:        )")), ""},
		{"a long installation that asks", agent(bash).run("apt-get install jq", timedOut("apt-get install jq", "Need to get 4772 kB of archives.\nGet:1 x")), "`nohup apt-get install jq -y > /tmp/apt-get.log 2>&1 &`"},
		{"a silent installation without a yes", agent(bash).run("sudo apt-get install curl", timedOut("sudo apt-get install curl", "")), "`apt-get install` without `-y` waits for a yes. In the background it can go on: end the same command with `-y > /tmp/apt-get.log 2>&1 &`"},
		{"an installation that waits for yes", agent(bash).run("apt install jq", timedOut("apt install jq", "Need to get 4772 kB of archives.\nDo you want to continue? [Y/n] ")), "often `-y`"},
		{"a path of another computer in a person's words", agent(bash).user("It fails in /usr/local/lib/python3.8/site-packages/_pytest/assertion/rewrite.py, line 666.").run("head _pytest/assertion/rewrite.py", "head: cannot open '_pytest/assertion/rewrite.py' for reading: No such file or directory"+ended), ""},
		{"a file that a program did not make", agent(bash).run("find /w/tests", "/w/tests/roots/subdir/_build/index.html\n").run("python /w/reproduce.py", "Traceback (most recent call last):\n  File \"/w/reproduce.py\", line 49, in <module>\n    with open(\"_build/index.html\", \"r\") as f:\nFileNotFoundError: [Errno 2] No such file or directory: '_build/index.html'"+ended), ""},
		{"no more than the name", agent(bash).run("search_dir x", "Found in /r/a:\nparser.go (2 matches)\n").run("cat a/parser.go", "cat: a/parser.go: No such file or directory"+ended), ""},
		{"a tool of another name", agent(tool("run_bash", "Run a shell command.", "*command", "string"), tool("read_file", "Read a file.", "*path", "string"), tool("read_dir", "List a directory.", "*path", "string"), tool("http_fetch", "Get a page.", "*url", "string")).
			call("repo_browser", object{"path": "/"}, "Error: tool 'repo_browser' is not in the allowlist"), "`read_dir` and `read_file`"},
		{"a value that the schema does not have", agent(tool("build", "Build.", "*target", `{"type":"string","enum":["debug","release"]}`)).call("build", object{"target": "fast"}, "Error: invalid value for target"), "`target` must be one of `debug` or `release`"},
		{"a type that JSON Schema does not know", agent(tool("read_file", "Read.", "*path", "any")).call("read_file", object{"path": 3}, "Error: path must be a string, received number"), ""},
		{"a wrong type", agent(tool("read_file", "Read.", "*path", "string")).call("read_file", object{"path": 3}, "Error: path must be a string, received number"), "`path` must be of type string"},
		{"a parameter that one command needs", agent(tool("str_replace_editor", "Edit.", "*command", "string", "*path", "string", "old_str", "string", "new_str", "string")).
			call("str_replace_editor", object{"command": "str_replace", "path": "/w/a.py", "new_str": "x"}, "ERROR:\nParameter `old_str` is required for command: str_replace."), "no `old_str`"},
		{"a server that breaks its own schema", agent(tool("web_search", "Search.", "*query", "string")).call("web_search", object{"query": "x"},
			"[\n  {\n    \"code\": \"invalid_type\",\n    \"expected\": \"string\",\n    \"received\": \"undefined\",\n    \"path\": [\n      \"content\",\n      0\n    ],\n    \"message\": \"Required\"\n  }\n]"), "not to blame"},
		{"a table", agent(sql).call("execute_sql", object{"query": "SELECT name FROM shops"}, "Error executing query: Table 'hire.shops' doesn't exist"), "`SHOW TABLES`"},
		{"a table that a program asks for", agent(bash).run("python reproduce.py", "Traceback (most recent call last):\n  File \"/t/db/sqlite3/base.py\", line 412, in execute\n    return Database.Cursor.execute(self, query, params)\ndjango.db.utils.OperationalError: no such table: __main___foo"+ended), ""},
		{"a table of a program in the command", agent(bash).run("cat <<'EOF' > r.py\nq = 'DROP TABLE job'\nEOF\npython r.py", "Traceback (most recent call last):\n  File \"/t/db/base.py\", line 89, in execute\ndjango.db.utils.OperationalError: no such table: job"+ended), ""},
		{"a table in a command", agent(bash).run("sqlite3 a.db 'SELECT * FROM users'", "Error: in prepare, no such table: users"+ended), "sqlite_master"},
		{"a column", agent(sql).call("execute_sql", object{"query": "SELECT name FROM airports"}, "Error executing query: Unknown column 'name' in 'field list'"), "`DESCRIBE airports`"},
		{"an answer that is no JSON", agent(bash).run("curl -s http://localhost:8000/a | python -m json.tool", "Exit code 1\nExpecting value: line 1 column 1 (char 0)"), "`curl -i http://localhost:8000/a`"},
		{"a managed Python", agent(bash).run("pip install requests", "error: externally-managed-environment\n\n× This environment is externally managed"+ended), "python3 -m venv .venv"},
		{"bash's source in a notebook", agent(bash).run("!source $HOME/.cargo/env", "/usr/bin/sh: 1: source: not found"), "`!bash -c 'source $HOME/.cargo/env'`"},
		{"the same place below the working directory", agent(bash).run("find . -name run_qa.py", "src/run_qa.py").
			run("python src/run_qa.py --do_train", "python: can't open file '/content/LinkBERT/src/run_qa.py': [Errno 2] No such file or directory"+ended), ""},
		{"a download that was ended", agent(bash).run("mkdir -p e && cd e && wget http://example.com/g.zip && unzip g.zip", "171600K .......... 20% 4.38M 1m54s/bin/bash: line 503:  1362 Killed                  wget http://example.com/g.zip\n///PROCESS-DONE:137:PROCESS-DONE///\n\nEXECUTION TIMED OUT BECAUSE THE COMMAND WAS RUNNING FOR MORE THAN 25 SECONDS."), "`wget` was still at work"},
		{"a lock", agent(bash).run("apt-get install -y jq", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"+ended), "`tail --pid=812 -f /dev/null`"},
		{"a long installation", agent(bash).run("cd /app && conda env create -f e.yml", timedOut("cd /app && conda env create -f e.yml", "Collecting package metadata: ...working...")), "`cd /app && nohup conda env create -f e.yml > /tmp/conda.log 2>&1 &`"},
		{"a program that asks", agent(bash).run("./maze_game.sh 1", timedOut("./maze_game.sh 1", "Welcome.\nType 'exit' to quit the game.\n> ")), "| ./maze_game.sh 1`"},
		{"a limit in seconds", agent(bash).run("gh api x", "API rate limit exceeded, retry after 30 seconds"+ended), "30 seconds"},
		{"an edit that is not indented", agent(bash).run("edit 101:101\nresult = eval(expr, d)\nend_of_edit", edited("IndentationError: unexpected indent", "100:        try:\n101:result = eval(expr, d)\n102:            return result", "100:        try:\n101:            result = expr\n102:            return result")), "by 12"},
		{"an edit whose original nobody saw", agent(bash).run("edit 101:101\nresult = eval(expr, d)\nend_of_edit", edit("IndentationError: unexpected indent", "100:        try:\n101:result = eval(expr, d)\n102:            return result")), ""},
		{"a function below a comment, with half of the old one", agent(bash).run("edit 4:6\n# NOTE: an example.\ndef f(h):\n    return 1\nend_of_edit", edited("IndentationError: unexpected indent", "3:\n4:# NOTE: an example.\n5:def f(h):\n6:    return 1\n7:                n = g(h)", "3:\n4:# NOTE: an example.\n5:def f(h):\n6:    if h:\n7:                n = g(h)")), "The range 4:6 is too short: line 7"},
		{"a line for a block that goes on", agent(bash).run("edit 17:18\n    return 0\nend_of_edit", edited("IndentationError: unexpected indent", "16:def f(h):\n17:    return 0\n18:        n = 1", "16:def f(h):\n17:    if h:\n18:        return 1\n19:        n = 1")), ""},
		{"a line for itself and the one before", agent(bash).run("edit 39:40\n    return a\nend_of_edit", edited("IndentationError: expected an indented block after 'if' statement on line 38", "38:                if n:\n39:    return a", "38:                if n:\n39:                    break\n40:    return a")), ""},
		{"a line that is already above the range", agent(bash).run("edit 292:292\n        for p in ps:\n            p.grad /= n\nend_of_edit", edited("IndentationError: expected an indented block after 'for' statement on line 291", "291:        for p in ps:\n292:        for p in ps:\n293:            p.grad /= n", "291:        for p in ps:\n292:            p.grad /= n")), ""},
		{"a head that is already above the range", agent(bash).run("edit 74:75\ndef fit(x):\n    m = GB()\nend_of_edit", edited("IndentationError: expected an indented block after function definition on line 73", "73:def fit(x):\n74:def fit(x):\n75:    m = GB()\n76:    m.fit(x)", "73:def fit(x):\n74:    # Linear.\n75:    m = Ridge()\n76:    m.fit(x)")), ""},
		{"a block without the head that it replaces", agent(bash).run("edit 44:46\n        self.conv = conv(3, 32)\n        self.relu = nn.ReLU()\nend_of_edit", edited("IndentationError: unexpected indent", "43:\n44:        self.conv = conv(3, 32)\n45:        self.relu = nn.ReLU()\n46:        self.relu = nn.ReLU()", "43:\n44:class Net(nn.Module):\n45:    def __init__(self):\n46:        self.conv = conv(3, 16)\n47:        self.relu = nn.ReLU()")), ""},
		{"only the head of a function", agent(bash).run("edit 221:223\n# Loading.\ndef load(d):\nend_of_edit", edited("IndentationError: expected an indented block after function definition on line 222", "220:\n221:# Loading.\n222:def load(d):\n223:    assert d", "220:\n221:def load(d):\n222:    # All.\n223:    x = 1\n224:    assert d")), ""},
		{"a comment that stands twice", agent(bash).run("edit 235:236\nfrom a import b\n# Find row entry\nend_of_edit", edited("IndentationError: unexpected indent", "234:        if c:\n235:from a import b\n236:# Find row entry\n237:        # Find row entry\n238:        for d in e:", "234:        if c:\n235:            d = 1\n236:            f = 2\n237:        # Find row entry\n238:        for d in e:")), ""},
		{"a line that stands twice with another indentation", agent(bash).run("edit 72:72\nfrom a import User\nsite = admin.Site()\nend_of_edit", edited("SyntaxError: expected 'except' or 'finally' block", "71:    try:\n72:from a import User\n73:site = admin.Site()\n74:        site = admin.Site()", "71:    try:\n72:        request = get()\n73:        site = admin.Site()")), ""},
		{"an edit that leaves a bracket", agent(bash).run("edit 46:47\nfrom a import (\n    b\n)\nend_of_edit", edit("SyntaxError: unmatched ')'", "46:from a import (\n47:    b\n48:)\n49:)")), "the same edit for 46:48"},
		{"Java in a file of Python", agent(bash).run("edit 1:46\npublic class A { }\nend_of_edit", edit("SyntaxError: invalid syntax", "1:public class A { }")), "`a.java`"},
		{"an edit with other white space", agent(bash, read, tool("edit", "Edit a file.", "*path", "string", "*old_string", "string", "*new_string", "string")).
			call("read", object{"path": "a.py"}, "1\tdef f():\n2\t    return 1\n").call("edit", object{"path": "a.py", "old_string": "\treturn 1", "new_string": "\treturn 2"}, "Error: String to replace not found in file."), "other white space"},
		{"a file in a listed directory", agent(bash).run("ls src", "main.py\nutil.py").run("cat util.py", "cat: util.py: No such file or directory\nExit code: 1"), "`src/util.py`"},
		{"a path in a listing of an absolute directory", agent(ls, read).call("ls", object{"path": "/w"}, "src/util.py\nsrc/main.py").call("read", object{"path": "util.py"}, "Error: ENOENT: no such file or directory, open 'util.py'"), "`/w/src/util.py`"},
		{"python behind cd", agent(bash).run("cd /w && python a.py", "bash: line 1: python: command not found\nExit code: 127"), "`cd /w && python3 a.py`"},
		{"an unknown tool beside a single one", agent(tool("get_weather", "Weather.", "*city", "string")).call("lookup_db", object{"q": 1}, "Tool lookup_db not found. Please select a tool that is available."),
			"no tool `lookup_db`, only `get_weather`."},
		{"an unknown tool in another one's place", agent(bash, read).call("invalid", object{"tool": "cat", "error": "x"}, "The arguments provided to the tool are invalid: Model tried to call unavailable tool 'cat'. Available tools: bash, read."), "no tool `cat`"},
		{"a script that is not executable", agent(bash).run("cd /w && ./build.sh x", "/bin/bash: line 1: ./build.sh: Permission denied\nExit code: 126"), "`cd /w && bash ./build.sh x`"},
		{"a server that says itself what to write", agent(bash).run("python3 -c 'run()'", "Exit code 1\nTraceback (most recent call last):\n  File \"<string>\", line 7, in <module>\nneo4j.exceptions.CypherSyntaxError: {message: replace size() with COUNT {}.}"), ""},
	} {
		s, _ := stage(t, nil)
		note, advice := s.Note(c.talk.seen(t))
		if (note == "") != (c.want == "") || !strings.Contains(note, c.want) {
			t.Errorf("%s: want %q:\n%s", c.name, c.want, note)
		}
		if note != "" {
			wellFormed(t, note)
			if len(advice.Strategies) != 1 || advice.Strategies[0] == "" || advice.Count == 1 && s.Priors()[string(advice.Category)][advice.Strategies[0]] != 0 {
				t.Errorf("%s: what events call it is empty, or a strategy's name: %+v", c.name, advice)
			}
		}
	}
}

// What the second failure of a kind must not propose.
func TestNoSuchAdvice(t *testing.T) {
	const ended = "\nExit code: 1"
	for name, c := range map[string]struct {
		line, result string
		never        []string
	}{
		"a version that the shell took for a file": {"!pip install numpy<1.28.0", "/usr/bin/sh: 1: cannot open 1.28.0: No such file", []string{"as it is printed", "`1.28.0` new", "where `1.28.0`"}},
		"an option on a line of its own":           {"bash run.sh", "run.sh: line 9: --template: command not found", []string{"Do without", "--template`"}},
		"the program that a script calls":          {"!bash train.sh", "fairseq-train: error: argument --arch/-a: invalid choice: 'x' (choose from 'a', 'b')" + ended, []string{"`bash` is called", "`!bash` is called", "Call `bash`", "Call `!bash`"}},
		"a browser that its program can get":       {"npx playwright screenshot http://localhost:3000 a.png", "Error: i.parse: Executable doesn't exist at /u/ms-playwright/webkit-2248/pw_run.sh\n║ Please run the following command to download new browsers: ║\n║     npx playwright install ║" + ended, []string{"Do without", "install the missing program"}},
		"a file below the project":                 {"echo x > /w/p/evaluate.py", "bash: line 79: /w/p/evaluate.py: Permission denied\n(Open file: n/a)\n(Current directory: /w/p)\nbash-$", []string{"instead of at"}},
		"an edit that does not parse":              {"edit 90:90\nend_of_edit", "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999 IndentationError: unexpected indent\nYour changes have NOT been applied.\n(Open file: /p/a.py)\n(Current directory: /p)\nbash-$", []string{"plainer", "without quotes", "smaller"}},
		"Python that a tool for code ran":          {"def f():\n    return 1\nf()", "Traceback (most recent call last):\nTimeoutError: Timed out after 30 seconds.", []string{"`def`"}},
	} {
		talk := agent(bash)
		for times := range 4 {
			talk = talk.run(c.line, c.result)
			s, _ := stage(t, nil)
			note, _ := s.Note(talk.seen(t))
			for _, n := range c.never {
				if strings.Contains(note, n) {
					t.Errorf("%s, %d times: %q in\n%s", name, times+1, n, note)
				}
			}
		}
	}
}

// A code block that an agent does not see has no end, or its end is not on a line of its own.
func TestFence(t *testing.T) {
	const refused = "Please always provide EXACTLY ONE action in triple backticks, found 0 actions.\n\nPlease format your action in triple backticks as shown in <response_example>."
	for _, c := range []struct{ said, want string }{
		{"I look.\n\n```bash\npython - <<'PY'\nprint(1)\nPY```", "stand behind `PY`"},
		{"I look.\n\n```bash\npython - <<'PY'\nprint(1)\nPY", "has no end"},
		{"I look.\n\n```bash\ncat a.py", "has no end"},
		{"I write.\n\n```bash\ncat <<'EOF' > a.json\n[" + strings.Repeat("0.1, ", 2000), ""},
		{"I look.\n\n```sh\ncat a.py\n```", ""},
		{"I look.", ""},
	} {
		s, _ := stage(t, nil)
		talk := agent().says("I begin.\n\n```bash\nls\n```").user("<returncode>0</returncode>\n<output>\na.py\n</output>").says(c.said).user(refused)
		talk.messages[0]["content"] = "Your response must contain exactly ONE bash code block with ONE command."
		note, _ := s.Note(talk.seen(t))
		if (note == "") != (c.want == "") || !strings.Contains(note, c.want) {
			t.Errorf("%q: want %q:\n%s", c.said, c.want, note)
		}
		if note != "" {
			wellFormed(t, note)
		}
	}
}

// A program's own message says what is wrong with a command line: only an exact repetition or the third failure is
// worth a note.
func TestSaysItself(t *testing.T) {
	s, _ := stage(t, nil)
	c := agent(bash)
	for i, line := range []string{"rencrypt --help", "rencrypt -h", "rencrypt -p x"} {
		c.run(line, "usage: rencrypt [-o OUTPUT] [-p PROTOCOL] [-v] input_files [input_files ...]\nrencrypt: error: the following arguments are required: input_files\nExit code: 2")
		if note, _ := s.Note(c.seen(t)); (note == "") != (i < 2) {
			t.Errorf("time %d: %s", i+1, note)
		}
	}
	for name, messages := range map[string]string{
		"hosts": "curl: (7) Failed to connect to a.example port 443 after 0 ms: Couldn't connect to server\nExit code: 7",
		"edits": "ERRORS:\n- E999 IndentationError: unexpected indent\nYour changes have NOT been applied.\n(Open file: /p/a.py)\n(Current directory: /p)\nbash-$",
		"files": "cat: a/b.txt: No such file or directory\nExit code: 1",
	} {
		c := agent(bash)
		for i := range 2 {
			if note, _ := s.Note(c.run(fmt.Sprintf("cat a/b.txt -%d", i), messages).seen(t)); note != "" {
				t.Errorf("%s, time %d: %s", name, i+1, note)
			}
		}
	}
	c = agent(bash).run("rencrypt", "rencrypt: error: the following arguments are required: input_files\nExit code: 2").run("rencrypt", "rencrypt: error: the following arguments are required: input_files\nExit code: 2")
	if note, _ := s.Note(c.seen(t)); !strings.Contains(note, "twice") {
		t.Errorf("an exact repetition: %s", note)
	}
}

// Python that often runs into the time limit is ended with a traceback.
func TestInterrupted(t *testing.T) {
	s, _ := stage(t, nil)
	c, note := agent(bash), ""
	for i, out := range []string{"reading", "sorting", "walking"} {
		line := fmt.Sprintf("cd /app && timeout 30 python3 solve.py %d", i)
		note, _ = s.Note(c.run(line, out+"\nExit code: 124").seen(t))
	}
	if !strings.Contains(note, "`cd /app && timeout -s INT 20 python3 solve.py 2` ends with a traceback") {
		t.Errorf("the note is %q", note)
	}
}

// The ladder: nothing, a strategy, the next one firmly, the user, nothing; no words twice.
func TestRungs(t *testing.T) {
	s, _ := stage(t, nil)
	c, said := agent(bash), map[string]bool{}
	var notes []string
	for range 9 {
		c.run("cat a/b.txt", "cat: a/b.txt: No such file or directory\n\nExit code: 1")
		note, _ := s.Note(c.seen(t))
		if notes = append(notes, note); note == "" {
			continue
		}
		wellFormed(t, note)
		_, advice, _ := strings.Cut(note, "\n")
		if said[advice] {
			t.Errorf("said twice: %s", advice)
		}
		said[advice] = true
	}
	for i, want := range []string{"", "twice", "3 times, with the same error. Do not make it again", "ask the user to say where `b.txt` is", "", "", "", "", ""} {
		if (notes[i] == "") != (want == "") || !strings.Contains(notes[i], want) {
			t.Errorf("time %d: want %q:\n%s", i+1, want, notes[i])
		}
	}
}

// A fact stands again as the call to make, and firmly the third time; then there is nothing more.
func TestFactAgain(t *testing.T) {
	s, _ := stage(t, nil)
	c := agent(bash, read).run("find . -name parser.go", "./internal/core/parser.go\n")
	for i, want := range []string{"An earlier result shows", "Make the same call with the path `internal/core/parser.go`", "3 times", ""} {
		c.call("read", object{"path": "parser.go"}, "Error: ENOENT: no such file or directory, open 'parser.go'")
		if note, _ := s.Note(c.seen(t)); (note == "") != (want == "") || !strings.Contains(note, want) || want != "" && !strings.Contains(note, "internal/core/parser.go") {
			t.Errorf("time %d: want %q:\n%s", i+1, want, note)
		}
	}
}

// A gateway that first sees a session at its fourth failure says the fact, firmly.
func TestFactLate(t *testing.T) {
	s, _ := stage(t, nil)
	c := agent(bash, read).run("find . -name parser.go", "./internal/core/parser.go\n")
	for range 4 {
		c.call("read", object{"path": "parser.go"}, "Error: ENOENT: no such file or directory, open 'parser.go'")
	}
	x := c.seen(t)
	x.Turn.Untold = true
	if note, _ := s.Note(x); !strings.Contains(note, "Do not make it again") || !strings.Contains(note, "internal/core/parser.go") {
		t.Errorf("the note is\n%s", note)
	}
}

// What a shell makes of prose is one failure, whatever its quotes are.
func TestProse(t *testing.T) {
	s, _ := stage(t, nil)
	c := agent(bash)
	odd := "/bin/bash: line 2: unexpected EOF while looking for matching `''\n/bin/bash: line 4: syntax error: unexpected end of file"
	for i, want := range []string{"holds prose", "twice", "3 times", "", "5 times"} {
		line, out := fmt.Sprintf("DISCUSSION\nThe shell of try %d seems broken.", i), "/bin/bash: line 12: DISCUSSION: command not found"
		if i%2 == 1 {
			line, out = fmt.Sprintf("DISCUSSION\nIt's the shell's fault, try %d.", i), odd
		}
		if note, _ := s.Note(c.run(line, out).seen(t)); (note == "") != (want == "") || !strings.Contains(note, want) {
			t.Errorf("time %d: want %q:\n%s", i+1, want, note)
		}
	}
}

// Five equal errors that no chain explains, of other calls, are told, once.
func TestUnexplained(t *testing.T) {
	s, _ := stage(t, nil)
	c, told := agent(tool("http_fetch", "Get.", "*url", "string")), 0
	for i := range 6 {
		c.call("http_fetch", object{"url": fmt.Sprint("http://x.example/", i)}, "Error: E41 unacceptable value")
		if note, _ := s.Note(c.seen(t)); strings.Contains(note, "5 times with the same error, whatever the calls were") {
			told++
		} else if note != "" {
			t.Errorf("time %d: %s", i+1, note)
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
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

// A fact reads its cause from the failing result, and does not guess one that the result does not name.
func TestCauses(t *testing.T) {
	const ended = "\nExit code: 1"
	sql := tool("execute_sql", "Run a query.", "*query", "string")
	powershell := tool("shell", "Run a command of PowerShell.", "*command", "string")
	missing := func(name string) string {
		return "ls: cannot access '" + name + "': No such file or directory\nExit code: 2"
	}
	child := "Traceback (most recent call last):\n  File \"build.py\", line 3, in <module>\n    subprocess.run([\"javac\", \"A.java\"])\n  File \"/usr/lib/python3.11/subprocess.py\", line 1955, in _execute_child\n" +
		"    raise child_exception_type(errno_num, err_msg, err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: 'javac'"
	ps := "error: process ID out of range\n\nUsage:\n ps [options]\n\n Try 'ps --help <simple|list|output|threads|misc|all>'\n  for additional help text.\nExit code: 1"
	remote, own := tool("execute_command", "Run it.", "*command", "string", "*technique", "string"), "Error executing tool execute_command with arguments {'command': 'kerbrute --version', 'mitre_attack_technique': 'T1589.002'}: SSHConnection.execute_command() missing 1 required positional argument: 'mitre_attack_procedure'"
	creator, empty := tool("str_replace_editor", "Edit.", "*command", "string", "*path", "string", "file_text", "string"), "ERROR: Parameter `file_text` is required for command: create"
	tar := "tar (child): app-1.tar.gz: Cannot open: No such file or directory\ntar (child): Error is not recoverable: exiting now\nExit code: 2"
	for _, c := range []struct {
		name string
		talk *talk
		want string // "" is no note
		not  string
	}{
		{"a program that a script misses", agent(bash).run("node scripts/ready.mjs a", "error: `acme` CLI not found on PATH.\n\nInstall it."+ended).run("node scripts/ready.mjs b", "error: `acme` CLI not found on PATH.\n\nInstall it."+ended), "Do without `acme`", "`node`"},
		{"a name with blanks", agent(bash).run("I'm sorry, but I can't do that.", "/bin/bash: line 1: Im sorry, but I cant: command not found"+ended), "took `Im sorry, but I cant` for the name of one program", "without"},
		{"a command in backticks", agent(bash).run("`cat a.txt | awk '{print $2}'`", "/bin/bash: line 1: total: command not found"+ended), "Without the backticks", "Do without"},
		{"a command in a code block", agent(bash).run("```bash grep -c x a.txt | wc -l```", "/usr/bin/grep: /usr/bin/grep: cannot execute binary file\n/bin/bash: line 1: 0: command not found"+ended), "Run `grep -c x a.txt | wc -l`", "Do without"},
		{"a command of another program", agent(bash).run("rpcclient -U x 10.0.0.1 -c 'lookupsid S-1-5'", "command not found: lookupsid"+ended).run("echo 'lookupsid S-1-5' | rpcclient -U x 10.0.0.1", "command not found: lookupsid"+ended), "", ""},
		{"a tool that speaks of itself", agent(remote).call("execute_command", object{"command": "kerbrute --version"}, own).call("execute_command", object{"command": "kerbrute --version"}, own).call("execute_command", object{"command": "kerbrute --version"}, own), "definition of `execute_command`", "`kerbrute` is called"},
		{"a message with two parameters", agent(creator).call("str_replace_editor", object{"command": "create", "path": "a.py", "file_text": ""}, empty).call("str_replace_editor", object{"command": "create", "path": "b.py", "file_text": ""}, empty).call("str_replace_editor", object{"command": "create", "path": "c.py", "file_text": ""}, empty), "name by name", "`command`"},
		{"a program that explains itself below", agent(bash).run("ps -p $(cat a) | grep -q x", ps).run("ps -p $(cat b) | grep -q x", ps).run("ps -p $(cat c) | grep -q x", ps), "how `ps` is called", "`grep`"},
		{"a program that find misses", agent(bash).run("find a -exec file {} \\;", "find: 'file': No such file or directory"+ended).run("find b -exec file {} \\;", "find: 'file': No such file or directory"+ended), "Do without `file`", "`find`"},
		{"a folder with a slash at its end", agent(bash).run("ln -s a /w/links/", "ln: failed to create symbolic link '/w/links/': No such file or directory"+ended).run("ln -s a /w/links/", "ln: failed to create symbolic link '/w/links/': No such file or directory"+ended), "List `/w` and search for `links`", ""},
		{"a process that has ended", agent(bash).run("find / -name a", "find: '/proc/2053/task/2053/fd/5': No such file or directory"+ended).run("find / -name b", "find: '/proc/2053/task/2053/fd/5': No such file or directory"+ended), "", ""},
		{"a sign in place of a file", agent(bash).run("awk -f, 1 a", "awk: cannot open , (No such file or directory)"+ended).run("awk -f, 1 b", "awk: cannot open , (No such file or directory)"+ended), "", ""},
		{"a placeholder that nothing replaced", agent(bash).run("find a | xargs gzip -9 {}", "gzip: {}: No such file or directory"+ended).run("find b | xargs gzip -9 {}", "gzip: {}: No such file or directory"+ended), "", ""},
		{"what a command printed in place of a name", agent(bash).run("wc -l $(find a | wc -l)", "wc: 0: No such file or directory"+ended).run("wc -l $(find b | wc -l)", "wc: 0: No such file or directory"+ended), "", ""},
		{"a pattern that matches nothing", agent(bash).run("get a; ls -la /tmp/x*", missing("/tmp/x*")).run("get b; ls -la /tmp/y*", missing("/tmp/y*")).run("get c; ls -la /tmp/z*", missing("/tmp/z*")), "", ""},
		{"an archive", agent(bash).run("tar xzf app-1.tar.gz", tar).run("tar xzf app-1.tar.gz", tar), "Search for `app-1.tar.gz`", "`open`"},
		{"the last word of a sentence", agent(bash).run("iconv -t x a", "iconv: failed to start conversion processing: No such file or directory"+ended).run("iconv -t x a", "iconv: failed to start conversion processing: No such file or directory"+ended), "exactly as it is printed", "`processing`"},
		{"a number in place of a file", agent(bash).run("gcc a.S -o a ./a 266134863", "/usr/bin/ld: cannot find 266134863: No such file or directory"+ended).run("gcc b.S -o b ./b 266134863", "/usr/bin/ld: cannot find 266134863: No such file or directory"+ended), "", ""},
		{"the same path with its backslashes doubled", agent(powershell).user("Read `C:\\\\u\\\\skills\\\\grant\\\\ROUTER.md` first.").
			call("shell", object{"command": `Get-Content -Path "C:\u\skills\grant\ROUTER.md"`}, `Get-Content: Cannot find path 'C:\u\skills\grant\ROUTER.md' because it does not exist.`+ended), "", ""},
		{"a folder with a blank in its name", agent(bash).run("rg --files -g '*.tsx' | rg register/page", "./Site copy/web/app/register/page.tsx").run("sed -n 1,80p ../Site/web/app/register/page.tsx", "sed: can't read ../Site/web/app/register/page.tsx: No such file or directory"+ended), "", ""},
		{"a name twice in a path", agent(bash).run("find . -name java", "./a/java/b/java").run("ls b/java", "ls: cannot access 'b/java': No such file or directory"+ended), "at `a/java/b/java`", ""},
		{"a job of the shell", agent(bash).run("cd /tmp && ls x", "[2]+  Exit 2                  nohup python3 src/stability.py --repeats 8  (wd: /tmp/smoke)\n").
			run("tail -5 a.log; ls", "python3: can't open file '/tmp/smoke/src/stability.py': [Errno 2] No such file or directory"+ended), "", ""},
		{"a URL that curl refuses", agent(bash).run(`curl -sS "https://api.example/files/?page[size]=100" | python3 -c "import json,sys; json.load(sys.stdin)"`,
			"curl: (3) bad range in URL position 30:\nTraceback (most recent call last):\n  File \"<string>\", line 1, in <module>\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"+ended), "", ""},
		{"a path that is not in the command", agent(bash).run("ls /w", "a.tar.gz\nb.txt").run("ls /w | xargs -I@ du -b @", "du: cannot access 'a.tar.gz': No such file or directory\ndu: cannot access 'b.txt': No such file or directory"+ended), "at `/w/a.tar.gz`", "same call"},
		{"a column of another table", agent(sql).call("execute_sql", object{"query": "SELECT COUNT(*) FROM dogs d JOIN treatments AS t ON d.name = t.dog_name"}, "Error executing query: Unknown column 't.dog_name' in 'on clause'"), "`DESCRIBE treatments`", "dogs"},
		{"a column of a table without another name", agent(sql).call("execute_sql", object{"query": "SELECT name FROM dogs JOIN owners ON dogs.owner = owners.id"}, "Error executing query: Unknown column 'owners.id' in 'on clause'"), "`DESCRIBE owners`", "dogs"},
		{"a column of an inner query", agent(sql).call("execute_sql", object{"query": "SELECT COUNT(*) FROM dogs WHERE name NOT IN (SELECT dog_name FROM treatments)"}, "Error executing query: Unknown column 'dog_name' in 'field list'"), "`DESCRIBE treatments`", "dogs"},
		{"a column in the condition", agent(sql).call("execute_sql", object{"query": "SELECT name FROM dogs WHERE owner = (SELECT id FROM owners WHERE city = 'Ulm')"}, "Error executing query: Unknown column 'city' in 'where clause'"), "`DESCRIBE owners`", "dogs"},
		{"a column of a table in a schema", agent(sql).call("execute_sql", object{"query": "SELECT d.name FROM hr.department d"}, `Error: column d.name does not exist`), "WHERE table_name = 'department'`", "hr.department'"},
		{"a column that the query makes", agent(sql).call("execute_sql", object{"query": "SELECT COUNT(*) AS total FROM audit HAVING total > 1"}, `Error: column "total" does not exist`), "", ""},
		{"a column behind what is inserted", agent(sql).call("execute_sql", object{"query": "INSERT INTO ages (band, n) SELECT band, n FROM people GROUP BY band"}, `Error: column "band" does not exist`), "`people`", "ages"},
		{"a table of a query", agent(sql).call("execute_sql", object{"query": "WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a; SELECT * FROM b"}, `Error: relation "b" does not exist`), "", ""},
		{"a table that was temporary", agent(sql).call("execute_sql", object{"query": "\nCREATE TEMPORARY TABLE counts (n INTEGER)"}, "No results").call("execute_sql", object{"query": "INSERT INTO counts SELECT 1"}, `Error: relation "counts" does not exist`), "as a temporary table", "information_schema"},
		{"Python in a shell", agent(bash).run("import socket\ns = socket.socket()", "bash: -c: line 2: syntax error near unexpected token `('"+ended), "took Python code", ""},
		{"Python that is no command", agent(bash).run("import socket\ns = (", "  File \"<stdin>\", line 2\nSyntaxError: '(' was never closed"+ended), "", ""},
		{"a program of the agent's own", agent(bash).run("./app 1", "bash: line 1: ./app: No such file or directory\nExit code: 127").run("./app 2", "bash: line 1: ./app: No such file or directory\nExit code: 127"), "", ""},
		{"a warning before the refusal", agent(bash).run("curl x -o a/b", "Warning: Permission denied"+ended).run("curl x -o a/c", "Warning: Permission denied"+ended), "as which user", "`Warning`"},
		{"a system's directory", agent(bash).run("apt-get install a", "E: List directory /var/lib/apt/lists/partial is missing. - Acquire (13: Permission denied)"+ended).run("apt-get install b", "E: List directory /var/lib/apt/lists/partial is missing. - Acquire (13: Permission denied)"+ended), "See", "instead of at"},
		{"a value that a query tries", agent(sql).call("execute_sql", object{"query": "SELECT move(0)"}, "Error executing SQL query: quantity must be at least 1").call("execute_sql", object{"query": "SELECT move(-5)"}, "Error executing SQL query: quantity must be at least 1"), "", ""},
		{"a sandbox that does not start", agent(bash).run("git log", "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"+ended).run("git remote -v", "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"+ended), "", ""},
		{"a refusal that names no path", agent(bash).run("iptables -L", "iptables v1.8.7: can't initialize table: Operation not permitted"+ended).run("iptables -S", "iptables v1.8.7: can't initialize table: Operation not permitted"+ended), "as which user", "directory"},
		{"a program that Python misses", agent(bash).run("python build.py a", child+ended).run("python build.py b", child+ended), "Do without `javac`", "`python`"},
	} {
		s, _ := stage(t, nil)
		note, _ := s.Note(c.talk.seen(t))
		if (note == "") != (c.want == "") || !strings.Contains(note, c.want) || c.not != "" && strings.Contains(note, c.not) {
			t.Errorf("%s: want %q and no %q:\n%s", c.name, c.want, c.not, note)
		}
		if note != "" {
			wellFormed(t, note)
		}
	}
}
