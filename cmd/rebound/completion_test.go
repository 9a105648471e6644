package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every command is completed, and every flag that is offered is one.
func TestCompletions(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	list := completables()
	for _, m := range regexp.MustCompile(`\n\tcase "([a-z]+)":`).FindAllSubmatch(source, -1) {
		if name := string(m[1]); name != "help" && !slices.ContainsFunc(list, func(c completable) bool { return c.name == name }) {
			t.Errorf("%s is not completed: it is not in the usage", name)
		}
	}
	flags := 0
	for _, c := range list {
		if c.about == "" && c.name != "version" {
			t.Errorf("%s: nothing is said of it", c.name)
		}
		for _, f := range c.flags {
			flags++
			var said bytes.Buffer
			run([]string{c.name, f + "=\x01", "-h"}, strings.NewReader(""), &said, &said)
			if strings.Contains(said.String(), "not defined") {
				t.Errorf("%s has no flag %s", c.name, f)
			}
		}
	}
	if len(list) < 14 || flags < 30 {
		t.Errorf("%d commands with %d flags", len(list), flags)
	}
}

// Real shells offer what fits to what was typed.
func TestShells(t *testing.T) {
	cases := []struct {
		typed []string
		want  []string
	}{
		{[]string{"to"}, []string{"tokens", "top"}},
		{[]string{"sessions", "re"}, []string{"reset"}},
		{[]string{"events", "--re"}, []string{"--requests", "--request"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		{[]string{"compress", "--li"}, []string{"--limit"}},
	}
	scripts := map[string]func(file string, typed []string) string{
		"bash": func(file string, typed []string) string {
			words := append([]string{"rebound"}, typed...)
			for i, w := range words {
				words[i] = quoted(w)
			}
			return fmt.Sprintf("source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _rebound; printf '%%s\\n' \"${COMPREPLY[@]}\"", file, strings.Join(words, " "), len(typed))
		},
		"fish": func(file string, typed []string) string {
			return fmt.Sprintf("source %s; complete -C 'rebound %s' | cut -f1", file, strings.Join(typed, " "))
		},
		// In zsh completion runs in its line editor, which needs a terminal: it is given one.
		"zsh": func(file string, typed []string) string {
			return fmt.Sprintf(`zmodload zsh/zpty; zpty z zsh -f; zpty -w z 'PROMPT=; autoload -U compinit; compinit -u -d %[1]s.dump; source %[1]s; LISTMAX=0; zstyle ":completion:*" list-separator "#"; setopt no_list_ambiguous; zle-line-init() { print rea""dy }; zle -N zle-line-init'
while zpty -r z l; do [[ $l == *ready* ]] && break; done
zpty -w -n z "rebound %[2]s"$'\t\t\x15'; zpty -w z 'print en""ded'
while zpty -r z l; do [[ $l == *ended* ]] && break; print -r -- $l; done`, file, strings.Join(typed, " "))
		},
	}
	for shell, script := range scripts {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("there is no " + shell)
			}
			var out bytes.Buffer
			if code := run([]string{"completion", shell}, nil, &out, &out); code != 0 {
				t.Fatal(code, out.String())
			}
			file := filepath.Join(t.TempDir(), "completion")
			if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				said, err := exec.Command(path, "-c", script(file, c.typed)).CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v\n%s", c.typed, err, said)
				}
				said = regexp.MustCompile(`\x1b\[[0-9?;]*[A-Za-z]`).ReplaceAll(said, []byte(" "))
				for _, w := range c.want {
					if !regexp.MustCompile(`(^|[^\w-])` + w + `($|[^\w-])`).Match(said) {
						t.Errorf("rebound %q offers %q, and not %s", c.typed, said, w)
					}
				}
				if strings.Contains(string(said), "healthcheck") {
					t.Errorf("rebound %q offers %q", c.typed, said)
				}
			}
		})
	}
}
