package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOptions(t *testing.T) {
	rest, listen := options([]string{"--port", "8080", "--seed", "42", "--host", "127.0.0.2", "--offline", "--hf-repo", "a/b", "--jinja"})
	if listen != "127.0.0.2:8080" || !slices.Equal(rest, []string{"--seed", "42", "--host", "127.0.0.2", "--jinja"}) {
		t.Error(listen, rest)
	}
}

func TestJudge(t *testing.T) {
	report := func(body string) []verdict {
		file := filepath.Join(t.TempDir(), "report.xml")
		if err := os.WriteFile(file, []byte("<testsuites><testsuite>"+body+"</testsuite></testsuites>"), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	const passes = `<testcase classname="a" name="b"/>`
	fails := func(line string) string {
		return `<testcase classname="a" name="c"><failure message="assert 1 == 2">def test():\n\n` + line + `</failure></testcase>`
	}
	for _, c := range []struct {
		name              string
		straight, through string
		same              bool
	}{
		{"alike", passes + fails("a.py:7: AssertionError"), passes + fails("a.py:7: AssertionError"), true},
		{"another line", passes + fails("a.py:7: AssertionError"), passes + fails("a.py:8: AssertionError"), false},
		{"fails only through", passes + passes, passes + fails("a.py:7: AssertionError"), false},
		{"one was not run", passes + passes, passes, false},
		{"nothing passes", fails("a.py:7: AssertionError"), fails("a.py:7: AssertionError"), false},
		{"nothing was run", "", "", false},
	} {
		if err := judge(report(c.straight), report(c.through)); (err == nil) != c.same {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
