package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// Where two categories show, a known relation decides.
func TestKnownRelationsDecide(t *testing.T) {
	for _, tt := range []struct {
		want    recovery.Category
		content string
	}{
		{recovery.InvalidArguments, wrapped(1, "invalid value \"ten\" for flag -depth: parse error\nUsage of ./crawl:\n  -depth int\n    \tdepth")},
		{recovery.InvalidArguments, wrapped(2, "tiler: invalid value 'wide' for --mode: syntax error")},
		{recovery.CommandNotFound, wrapped(128, "error: cannot run meld: No such file or directory\nfatal: external diff died, stopping at a.c")},
		{recovery.CommandNotFound, wrapped(1, "hooks: failed to spawn 'pandoc': No such file or directory (os error 2)")},
		{recovery.PermissionDenied, wrapped(1, "Could not open file for loading the key from /srv/a.key\n80:error:8000000D:system "+
			"library:BIO_new_file:Permission denied:bss_file.c:67:calling fopen(/srv/a.key, rb)")},
		{recovery.PermissionDenied, wrapped(1, "requests.exceptions.ConnectionError: ('Connection aborted.', PermissionError(13, 'Permission denied'))")},
		{recovery.DiskFull, wrapped(1, "W: Failed to fetch http://a.example.com/x  Error writing to file - write (28: No space left on device)")},
		{recovery.ToolRateLimited, wrapped(1, "gh: API rate limit exceeded for user ID 1. (HTTP 403)")},
	} {
		if f := judge("bash", "", tt.content); f.Category != tt.want || f.Confidence < Threshold {
			t.Errorf("%q: %+v, want %s", tt.content, f, tt.want)
		}
	}
	f := judge("bash", "", wrapped(1, "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/requests/models.py\", line 971, in json\n"+
		"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"))
	if !f.Failed || f.Category != recovery.CategoryNone {
		t.Errorf("a server's answer that is no JSON: %+v", f)
	}
}

// Without one, nobody is told.
func TestConflictsStayBelowTheThreshold(t *testing.T) {
	for _, content := range []string{
		wrapped(1, "chdir build: no such file or directory\nError: connect ECONNREFUSED 127.0.0.1:80\nbuild ended"),
		wrapped(1, "connection lost, then a parse error in the answer"),
		wrapped(0, "FileNotFoundError: [Errno 2] No such file or directory: 'ogr2ogr'"),
		wrapped(1, "a.rb:3:in `run': No such file or directory - ogr2ogr (Errno::ENOENT)"),
	} {
		if f := judge("bash", "", content); !f.Failed || f.Confidence >= Threshold {
			t.Errorf("%q: %+v", content, f)
		}
	}
	// The frames, or the name, tell.
	for content, want := range map[string]recovery.Category{
		wrapped(1, "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    open('Makefile')\nFileNotFoundError: [Errno 2] No such file or directory: 'Makefile'"): recovery.FileNotFound,
		wrapped(0, "FileNotFoundError: [Errno 2] No such file or directory: 'data/in.csv'"):                                                                                              recovery.FileNotFound,
		wrapped(1, "a.rb:3:in `initialize': No such file or directory @ rb_sysopen - Rakefile (Errno::ENOENT)"):                                                                          recovery.FileNotFound,
	} {
		if f := judge("bash", "", content); f.Category != want || f.Confidence < Threshold {
			t.Errorf("%q: %+v, want %s", content, f, want)
		}
	}
}

// A pipe hides the exit code of a program that says nothing but its error; what a
// command prints that reads is data.
func TestNothingButErrors(t *testing.T) {
	for output, want := range map[string]recovery.Category{
		"error writing \"part2\": no space left on device":                                                                                  recovery.DiskFull,
		"Can't open data/in.log: No such file or directory.":                                                                                recovery.FileNotFound,
		"ERR wrong number of arguments for 'get' command":                                                                                   recovery.InvalidArguments,
		"(error) NOPERM User a has no permissions to run the 'flushall' command":                                                            recovery.PermissionDenied,
		"Exception in thread \"main\" java.net.ConnectException: Connection refused\n\tat java.base/sun.nio.ch.Net.connect0(Native Method)": recovery.NetworkError,
		"Error: listen EACCES: permission denied 0.0.0.0:80\n    at Server.setupListenHandle (node:net:1886:21)":                            recovery.PermissionDenied,
		"ERROR:  canceling statement due to statement timeout":                                                                              recovery.ToolTimeout,
		"ERROR:  must be owner of table a":                                                                                                  recovery.PermissionDenied,
		"trio.TooSlowError":                                                                                                                 recovery.ToolTimeout,
	} {
		arguments := `{"command":"./load.sh 2>&1 | tail -5"}`
		if f := judge("bash", arguments, wrapped(0, output)); f.Category != want || f.Confidence < Threshold {
			t.Errorf("%q: %+v, want %s", output, f, want)
		}
	}
	line := "error writing \"part2\": no space left on device"
	for _, command := range []string{
		"cat load.log", "tail -1 load.log", "make -s; cat load.log", "grep error load.log | head -1", "sed -n 3p load.log", "docker logs web", "cd a && head -3 load.log",
		"for f in *.log; do head -1 $f; done", "ssh web tail -1 load.log", "git show HEAD:load.log", "ls *.log | xargs head -1", "heroku logs -n 1", "curl -s http://a.example.com/load.log | tail -1", "echo hello",
	} {
		if f := judge("bash", `{"command":"`+command+`"}`, wrapped(0, line)); f.Failed {
			t.Errorf("%s: %+v", command, f)
		}
	}
	for _, output := range []string{
		"port free: ECONNREFUSED", "No space left on device", "[(401, 'Unauthorized')]", line + "\ndone", "warning: " + line + ", retrying",
		"Error: connect ECONNREFUSED 127.0.0.1:5432\nSyntaxError: Unexpected token", line + "\n" + line + "\n" + line + "\n" + line,
	} {
		if f := judge("bash", `{"command":"./check"}`, wrapped(0, output)); f.Failed {
			t.Errorf("%q: %+v", output, f)
		}
	}
}
