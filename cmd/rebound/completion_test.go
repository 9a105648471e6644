package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command and every flag has a description.
func TestCommandsAreDescribed(t *testing.T) {
	p := program{env: noEnv}
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		seen++
		if c.Short == "" || c.Name() != "version" && c.Long == "" {
			t.Errorf("%s: it does not say what it does", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: it does not say what it does", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(p.commands())
	if seen < 24 {
		t.Errorf("%d commands", seen)
	}
}

// Shells complete commands and flags.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		typed []string
		want  []string
	}{
		{[]string{"to"}, []string{"tokens", "top"}},
		{[]string{"sessions", "re"}, []string{"reset"}},
		{[]string{"events", "--re"}, []string{"--request", "--requests"}},
		{[]string{"completion", ""}, []string{"bash", "fish", "powershell", "zsh"}},
		{[]string{"compress", "--li"}, []string{"--limit"}},
	} {
		out, _, code := runWith(noEnv, "", append([]string{"__complete"}, c.typed...)...)
		var got []string
		for line := range strings.Lines(out) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); word != "" && word[0] != ':' {
				got = append(got, word)
			}
		}
		if slices.Sort(got); code != 0 || !slices.Equal(got, c.want) {
			t.Errorf("rebound %q offers %q, want %q", c.typed, got, c.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, errs, code := runWith(noEnv, "", "completion", shell); code != 0 || !strings.Contains(out, "__complete") {
			t.Errorf("%s: exit code %d, %s", shell, code, errs)
		}
	}
}

// Flags may follow arguments.
func TestFlagsBehindArguments(t *testing.T) {
	_, errs, code := runWith(noEnv, "", "sessions", "reset", "s_1", "--url", "http://127.0.0.1:1")
	if code != 1 || !strings.Contains(errs, "no gateway answers at http://127.0.0.1:1 ") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// noEnv is an empty environment.
func noEnv(string) (string, bool) { return "", false }

// runWith executes a command line with this environment and standard input.
func runWith(env func(string) (string, bool), stdin string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	p := program{env: env, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs}
	code = p.run(args)
	return out.String(), errs.String(), code
}
