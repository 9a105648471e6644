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
