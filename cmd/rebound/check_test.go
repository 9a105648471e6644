package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", `
listen: 0.0.0.0:8080
auth: {keys: [{name: alice, env: ALICE}], admin_env: ADMIN}
upstreams:
  default: {keys: [{name: main, env: MAIN}, {name: spare, env: MAIN}]}
  local: {url: "http://127.0.0.1:11434/v1"}
models:
  small: {targets: [{upstream: local}, {upstream: default, model: gpt-4.1-mini}]}
`)
	bad := file("bad.yaml", "listne: x\nlog: {level: loud}\n")
	plain := file("empty.yaml", "")
	doubtful := file("doubtful.yaml", "upstreams: {default: {url: \"https://api.openai.com/v1/chat/completions\"}}\n")
	both := file("both.yaml", "upstreams: {default: {url: \"https://api.openai.com/v1/chat/completions\"}}\nlisen: 1\n")
	leaky := file("leaky.yaml", "upstreams: {default: {url: \"https://user:topsecret4@api.openai.com\"}}\n")
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"ALICE": "topsecret1", "ADMIN": "topsecret2", "MAIN": "topsecret3"}[name]
		return v, ok
	}
	summary := "ok: " + good + `
  listen     0.0.0.0:8080
  upstreams  default: https://api.openai.com/v1 (hosted; prefill none; keys main, spare; default)
             local: http://127.0.0.1:11434/v1 (local; prefill auto; no credential)
  models     small -> local/small, default/gpt-4.1-mini
  clients    keys alice
  admin      this machine, or the admin token
  state      memory
`
	tests := []struct {
		name     string
		args     []string
		code     int
		out, err string // out exactly if it ends with a line break, else what it contains
	}{
		{"good", []string{good}, 0, summary, ""},
		{"verbose", []string{"-v", good}, 0, "\nlimits:\n  body: 64MiB\n", ""},
		{"verbose after the file", []string{good, "-v"}, 0, "env: MAIN", ""},
		{"defaults", []string{plain}, 0, "(hosted; prefill none; the client's credential; default)", ""},
		{"bad", []string{bad}, 1, "", bad + ":1:1: listne: unknown key: did you mean listen?\n    1 | listne: …\n      | ^\n" + bad + ":2:14: log.level: \"loud\" is none of debug, info, warn, error\n    2 | log: {level: loud}\n      |              ^\n\n2 problems in " + bad + "\n"},
		{"a warning", []string{doubtful}, 0, "warning: upstreams.default.url", ""},
		{"a warning beside a problem", []string{both}, 1, "", both + ":2:1: lisen: unknown key: did you mean listen?\n    2 | lisen: …\n      | ^\n" +
			"warning: upstreams.default.url: https://api.openai.com/v1/chat/completions names an endpoint, " +
			"and the gateway adds the endpoint itself: probably https://api.openai.com/v1 is meant\n\n1 problem in " + both + "\n"},
		{"no warning of what is a problem", []string{leaky}, 1, "", "1 problem in "},
		{"a warning that counts", []string{"--strict", doubtful}, 1, "warning: upstreams.default.url", ""},
		{"nothing that counts", []string{"--strict", good}, 0, summary, ""},
		{"no such file", []string{filepath.Join(dir, "none.yaml")}, 2, "", "no such file"},
		{"a folder", []string{dir}, 2, "", "reading configuration"},
		{"no argument", nil, 2, "", `an argument is missing: write "rebound check FILE"`},
		{"two files", []string{good, bad}, 2, "", `too many arguments: write "rebound check FILE"`},
		{"unknown flag", []string{"-x", good}, 2, "", "unknown shorthand flag"},
		{"help", []string{"-h"}, 0, "rebound check FILE", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code := runWith(env, "", append([]string{"check"}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			matches(t, "stdout", out, tt.out)
			matches(t, "stderr", errs, tt.err)
			if strings.Contains(out+errs, "topsecret") {
				t.Error("a secret is shown")
			}
		})
	}
}

func matches(t *testing.T, what, got, want string) {
	t.Helper()
	ok := got == want
	if !ok && want != "" && strings.Count(want, "\n") < 5 {
		ok = strings.Contains(got, want)
	}
	if !ok {
		t.Errorf("%s is\n%s\nwant\n%s", what, got, want)
	}
}
