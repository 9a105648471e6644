package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// What linters, compilers and test runners quote is no evidence.
func TestQuotedSourceIsNoEvidence(t *testing.T) {
	for _, content := range []string{
		wrapped(1, "lint/noUnused ━━━\n     8 │ import a from \"a\";\n   > 9 │ throw new RateLimitError(\"x\");\n       │           ^^^^^\nFound 1 warning."),
		wrapped(1, "9 ┃ Error: connect ECONNREFUSED 127.0.0.1:80\n  ┃ ^^^^^"),
		wrapped(1, "warning: unused\n   |\n12 | cp: cannot stat 'x': No such file or directory\n   | ^^"),
		wrapped(1, "In a.sh line 3:\nbash: foo: command not found\n      ^-- SC2086 (info): Double quote"),
		wrapped(0, "❯ 9 │ Error: connect ECONNREFUSED 127.0.0.1:80"),
	} {
		if f := judge("bash", `{"command":"npm run lint 2>&1 | tail -5"}`, content); f.Category != recovery.CategoryNone {
			t.Errorf("%q: %+v", content, f)
		}
	}
	// The message below is the tool's own.
	content := wrapped(2, "   > 9 │ throw new RateLimitError(\"x\");\n       │           ^^^^^\nsh: 1: tsc: not found")
	if f := judge("bash", "", content); f.Category != recovery.CommandNotFound || f.Confidence < Threshold {
		t.Errorf("%+v", f)
	}
}

// A server that refuses was reached; the innermost cause of a connection decides.
func TestCauseOfAConnection(t *testing.T) {
	head := "psql: error: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: "
	for content, want := range map[string]recovery.Category{
		head + "FATAL:  database \"x\" does not exist":                                                                       recovery.CategoryNone,
		head + "FATAL:  role \"x\" does not exist":                                                                           recovery.CategoryNone,
		head + "FATAL:  sorry, too many clients already":                                                                     recovery.CategoryNone,
		head + "fe_sendauth: no password supplied":                                                                           recovery.CategoryNone,
		head + "a cause that nobody knows":                                                                                   recovery.CategoryNone,
		"psql: error: could not connect to server: FATAL:  database \"x\" does not exist":                                    recovery.CategoryNone,
		"failed to connect to `host=db user=a database=x`: server error (FATAL: database \"x\" does not exist)":              recovery.CategoryNone,
		head + "Connection refused\n" + head + "FATAL:  database \"x\" does not exist":                                       recovery.CategoryNone,
		head + "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?":                  recovery.NetworkError,
		head + "Connection reset by peer":                                                                                    recovery.NetworkError,
		"psql: error: could not translate host name \"db\" to address: Name or service not known":                            recovery.NetworkError,
		"psycopg2.OperationalError: connection to server at \"db\" (10.0.0.1), port 5432 failed: No route to host":           recovery.NetworkError,
		"psycopg2.OperationalError: connection to server at \"db\", port 5432 failed: FATAL:  database \"x\" does not exist": recovery.CategoryNone,
	} {
		for _, content := range []string{content, wrapped(2, content)} {
			f := judge("bash", "", content)
			if f.Category != want || want != recovery.CategoryNone && f.Confidence < Threshold || !f.Failed && content[0] == '<' {
				t.Errorf("%q: %+v, want %s", content, f, want)
			}
		}
	}
	if f := judge("bash", "", wrapped(2, head+"FATAL:  password authentication failed for user \"a\"")); f.Category == recovery.NetworkError {
		t.Errorf("%+v", f)
	}
}

// Where the frames, or the words, are those that run programs, a missing file is a missing command.
func TestMissingProgramByItsFrames(t *testing.T) {
	python := "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n  File \"<frozen os>\", line 1, in "
	for _, output := range []string{
		python + "execvp\nFileNotFoundError: [Errno 2] No such file or directory",
		python + "_execvpe\nFileNotFoundError: [Errno 2] No such file or directory",
		python + "_execute_child\nFileNotFoundError: [Errno 2] No such file or directory: 'ogr2ogr'",
		python + "<module>\n    os.posix_spawn('ogr2ogr', [], {})\nFileNotFoundError: [Errno 2] No such file or directory: 'ogr2ogr'",
		python + "_spawnvef\nFileNotFoundError: [Errno 2] No such file or directory: 'ogr2ogr'",
		"Error: spawn ogr2ogr ENOENT\n    at ChildProcess._handle.onexit (node:internal/child_process:286:19)",
		"a.rb:1:in `exec': No such file or directory - ogr2ogr (Errno::ENOENT)",
		"a.rb:1:in 'Kernel#exec': No such file or directory - ogr2ogr (Errno::ENOENT)",
		"a.rb:1:in `spawn': No such file or directory - ogr2ogr (Errno::ENOENT)\n\tfrom a.rb:1:in `<main>'",
		"2026/01/02 10:00:00 exec: \"ogr2ogr\": executable file not found in $PATH",
	} {
		if f := judge("bash", "", wrapped(1, output)); f.Category != recovery.CommandNotFound || f.Confidence < Threshold {
			t.Errorf("%q: %+v", output, f)
		}
	}
	if f := judge("bash", "", wrapped(1, python+"<module>\n    open('a.txt')\nFileNotFoundError: [Errno 2] No such file or directory: 'a.txt'")); f.Category != recovery.FileNotFound {
		t.Errorf("%+v", f)
	}
}

// An agent's shell that ended a command says so below what it printed, also where that is data.
func TestReaderThatWasStopped(t *testing.T) {
	data := "06:02 WARN broker: read timed out\n06:31 ERROR store: no space left on device\n"
	for content, want := range map[string]recovery.Category{
		data + "\n\nCommand timed out after 3 seconds":       recovery.ToolTimeout,
		"Command timed out after 30 seconds":                 recovery.ToolTimeout,
		"command timed out after 3000 milliseconds\n" + data: recovery.ToolTimeout,
		data + "[The command timed out after 5.0 seconds. You may wait longer to see additional output by sending empty command '', send other commands to interact with the current process.]": recovery.ToolTimeout,
		data + "Command timed out after 3 seconds":                       recovery.CategoryNone,
		data + "\nCommand timed out after 3 seconds\n" + data:            recovery.CategoryNone,
		data + "\n06:40 ERROR worker: Command timed out after 3 seconds": recovery.CategoryNone,
	} {
		f := judge("bash", `{"command":"tail -f kiln.log"}`, content)
		if f.Category != want || f.Failed != (want != recovery.CategoryNone) {
			t.Errorf("%q: %+v, want %s", content, f, want)
		}
	}
	if f := judge("read_file", "", data+"\n\nCommand timed out after 3 seconds"); f.Failed {
		t.Errorf("%+v", f)
	}
}

func TestWordsOfWrongNumbers(t *testing.T) {
	for category, outputs := range map[recovery.Category][]string{
		recovery.InvalidArguments: {"mktemp: too few X's in template ‘a’", "make: the '-j' option requires a positive integer argument\nUsage: make [options] [target] ..."},
		recovery.SyntaxError:      {"vet: bad/q.go:4:17: missing ',' before newline in composite literal (and 1 more errors)"},
		recovery.ToolRateLimited:  {"You have exceeded 100 requests per hour. Try again in 20 seconds."},
	} {
		for _, output := range outputs {
			if f := judge("bash", "", wrapped(1, output)); f.Category != category || f.Confidence < Threshold {
				t.Errorf("%q: %+v", output, f)
			}
		}
	}
}
