package annotate_test

import (
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// TestMessage: notes say what the message itself names, and nothing that only
// looks like it.
func TestMessage(t *testing.T) {
	const ended = "\n\nCommand exited with code 1"
	for _, c := range []struct {
		name, line, out string
		category        recovery.Category
		want            string
		not             []string
	}{
		{"a file of another kind", "xz -t data/a.csv", "xz: data/a.csv: File format not recognized", recovery.InvalidArguments, "`data/a.csv` is not of the kind that `xz` reads", nil},
		{"a script that says it of its own file", "python3 load.py", "usage: load.py FILE\nload.py: error: argument FILE: invalid value: File is not a zip file", recovery.InvalidArguments,
			"Correct just the value", []string{"of the kind"}},
		{"an absent archive", "unzip logs.zip", "unzip:  cannot find or open logs.zip, logs.zip.zip or logs.zip.ZIP: No such file or directory", recovery.FileNotFound, "`logs.zip`", []string{"of the kind"}},
		{"no file is named", "iconv -f utf8 -t klingon notes.txt", "iconv: failed to start conversion processing: No such file or directory", recovery.FileNotFound, "What `iconv` did not find may be no file", []string{"notes.txt"}},
		{"no file is named, but one was opened", "psql -f notes.sql", "psql: could not open the input: No such file or directory", recovery.FileNotFound, "notes.sql", []string{"may be no file"}},
		{"a test in a file", "pytest tests/test_a.py::test_b", "ERROR: file or directory not found: tests/test_a.py::test_b", recovery.FileNotFound, "Search for `test_a.py`", nil},
		{"a lock in no directory", "flock run/x.lock true", "flock: cannot open lock file run/x.lock: No such file or directory", recovery.FileNotFound, "The directory `run` is missing", nil},
		{"a form's file", "curl -F doc=@pics/logo.png https://x.example/up", "curl: (26) Failed to open/read local data from file/application: No such file or directory", recovery.FileNotFound, "`logo.png`", nil},

		{"a program behind env", "env -S nope run", "env: ‘nope’: No such file or directory" + "\n\nCommand exited with code 127", recovery.CommandNotFound, "`nope`", []string{"`-S`"}},
		{"a program at a path", "nohup ./out/tool", "nohup: failed to run command './out/tool': No such file or directory\n\nCommand exited with code 127", recovery.CommandNotFound, "See whether `./out/tool` has to be built first", []string{"install"}},
		{"a program of the system", "/usr/bin/tool x", "/bin/bash: line 1: /usr/bin/tool: command not found\n\nCommand exited with code 127", recovery.CommandNotFound, "tool", []string{"built first"}},
		{"what only bash knows", "sh x.sh", "x.sh: 3: [[: not found\n\nCommand exited with code 127", recovery.CommandNotFound, "does not know `[[`: run it with `bash`", []string{"install"}},
		{"source where it is known", "bash x.sh", "x.sh: line 3: sauce: command not found\n\nCommand exited with code 127", recovery.CommandNotFound, "`sauce`", []string{"does not know"}},
		{"a substitution", "sh -c 'echo ${x/y/z}'", "sh: 1: Bad substitution", recovery.SyntaxError, "does not know such a substitution", []string{"Write the code"}},

		{"a quoted value", "date -d yesterdy +%F", "date: invalid date ‘yesterdy’", recovery.InvalidArguments, "Correct `yesterdy` after `-d`", nil},
		{"a quoted value of an option", "xtool --level=hgih run", "xtool: invalid argument 'hgih'", recovery.InvalidArguments, "Correct `hgih`", nil},
		{"a quoted secret", "xtool --token abcdef123 run", "xtool: invalid argument 'abcdef123'", recovery.InvalidArguments, "Correct", []string{"abcdef123"}},
		{"what is missing", "tr a", "tr: missing operand after ‘a’", recovery.InvalidArguments, "`missing operand after ‘a’`", []string{"Correct `a`"}},
		{"an option that is proposed", "gcc -std=c++40 a.c", "gcc: error: unrecognized command-line option ‘-std=c++40’; did you mean ‘-std=c++20’?", recovery.InvalidArguments, "proposes `-std=c++20`", nil},
		{"nothing is proposed", "xtool --stat a.c", "xtool: error: unknown option '--stat'; did you mean one of these?\n  --status\n  --start", recovery.InvalidArguments, "--stat", []string{"proposes `one`"}},
		{"only how it is called", "python3 -m web run", "Usage: python -m web run [OPTIONS]\nTry 'python -m web run --help' for help.\n\nError: Invalid value: no such level.", recovery.InvalidArguments, "Correct", []string{"`-m`"}},
		{"code that is not closed", "awk '{print $2' a.csv", "awk: line 2: missing } near end of file", recovery.SyntaxError, "`missing } near end of file`", nil},

		{"a service that refuses", "vault kv get a/b", "Error making API request.\n\nURL: GET http://127.0.0.1:8200/v1/a/b\nCode: 403. Errors:\n\n* permission denied", recovery.PermissionDenied, "`127.0.0.1:8200` refused the account", []string{"ls -ld"}},
		{"a file that is refused", "cat /srv/logs/status", "cat: /srv/logs/status: Permission denied\nStatus: 403", recovery.PermissionDenied, "`/srv/logs/status`", []string{"refused the account"}},
		{"a socket", "psql shop", "psql: error: connection to server on socket \"/run/pg/.s.PGSQL.5432\" failed: No such file or directory\n\tIs the server running locally and accepting connections on that socket?",
			recovery.NetworkError, "No server listens at `/run/pg/.s.PGSQL.5432`", []string{"check the network"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := stage(t, nil)
			if !strings.Contains(c.out, "Command exited") {
				c.out += ended
			}
			x := agent(bash).run(c.line, c.out).exchange(t)
			note, advice := s.Note(x)
			if advice.Category != c.category {
				t.Fatalf("the advice is about %q, want %q; results %+v", advice.Category, c.category, x.Results)
			}
			if !strings.Contains(note, c.want) {
				t.Errorf("the note lacks %q:\n%s", c.want, note)
			}
			for _, w := range c.not {
				if strings.Contains(note, w) {
					t.Errorf("the note has %q:\n%s", w, note)
				}
			}
			wellFormed(t, note)
		})
	}
	s, _ := stage(t, nil)
	x := agent(bash).run("ls target dist", "target:\nshop-1.4.jar\nshop.txt\n").run("java -jar dist/shop.jar", "Error: Unable to access jarfile dist/shop.jar"+ended).exchange(t)
	if note, _ := s.Note(x); !strings.Contains(note, "`target/shop-1.4.jar`") {
		t.Errorf("a name with a version is not near: %s", note)
	}
}
