package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestRunDemo(t *testing.T) {
	running := goleak.IgnoreCurrent()
	out, errs, code := runWith(noEnv, "", "demo", "-v")
	if code != 0 || errs != "" {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
	for _, want := range []string{
		"none", "429, Retry-After: 1 ", "429, Retry-After: 1, 4 times", "500 ", "503, 4 times", "503 for ever; fallback",
		"502 with HTML page, 3 times", "connection reset, 3 times", "connection refused; fallback", "no answer; fallback",
		"no answer, the next is well", "only headers; fallback", "late first token; fallback", "stream cut at two thirds",
		"the same; server can continue", "stream stalls half-way", "ends without finish_reason", "error event half-way",
		"one malformed event", "no [DONE]", "empty 200", "role chunk and nothing else", "half a JSON body", "cut, then another answer",
		"key 1 of 2 unauthorised", "key 1 of 2 out of quota", "model withdrawn; fallback", "max_tokens refused", "temperature refused",
		"max_tokens above the limit", "context overflow; fallback",
	} {
		if !strings.Contains(out, "\n  "+want) {
			t.Errorf("no row %q", want)
		}
	}
	for _, want := range []string{
		"TRUNCATED, looks complete", "honest error at 65 %", " is as expected.", "error_recovery_success", "stream_resumed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("nowhere %q", want)
		}
	}
	goleak.VerifyNone(t, running)
}

func TestRunDemoArguments(t *testing.T) {
	for arg, want := range map[string]struct {
		code int
		text string
	}{
		"-h":     {0, "-v"},
		"-x":     {2, "unknown shorthand flag"},
		"faster": {2, `too many arguments: write "rebound demo"`},
	} {
		out, errs, code := runWith(noEnv, "", "demo", arg)
		if code != want.code || !strings.Contains(out+errs, want.text) {
			t.Errorf("%s: exit code %d, %q, %q", arg, code, out, errs)
		}
	}
}

func TestWantsColour(t *testing.T) {
	if wantsColour(&bytes.Buffer{}) {
		t.Error("a buffer is no terminal")
	}
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if wantsColour(f) {
		t.Error("a file is no terminal")
	}
}
