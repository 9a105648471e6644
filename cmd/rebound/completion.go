package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

const completionUsage = `usage: rebound completion bash|zsh|fish

Prints what makes a shell complete commands and flags:

  bash   source <(rebound completion bash)          in ~/.bashrc
  zsh    source <(rebound completion zsh)           in ~/.zshrc, after compinit
  fish   rebound completion fish | source           in ~/.config/fish/config.fish
`

// completable is a command as shells complete it.
type completable struct {
	name, about string
	flags       []string
	words       []string // that may follow it
}

var (
	usageLine = regexp.MustCompile(`^  rebound \[?([a-z]+)`)
	flagName  = regexp.MustCompile(`(?m)(?:^|[\s\[])--?([a-z][a-z-]*)`)
	optional  = regexp.MustCompile(`\[[^\]]*\]`)
	plainWord = regexp.MustCompile(`^[a-z]+$`)
)

// aboutColumn is where the usage begins to say what a command does.
const aboutColumn = len("  rebound compress --limit N [FILE] ")

// completables reads the commands out of the usage, and what each takes out of its own.
func completables() (list []completable) {
	for line := range strings.Lines(usage) {
		m := usageLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		c := completable{name: m[1]}
		if len(line) > aboutColumn {
			c.about = strings.TrimSpace(line[aboutColumn:])
		}
		if c.name != "version" {
			var help bytes.Buffer
			run([]string{c.name, "-h"}, strings.NewReader(""), &help, &help)
			c.read(help.String())
		}
		list = append(list, c)
	}
	return list
}

// read finds flags and words in a command's usage.
func (c *completable) read(help string) {
	for _, m := range flagName.FindAllStringSubmatch(help, -1) {
		name := "--" + m[1]
		if len(m[1]) == 1 {
			name = "-" + m[1]
		}
		if name != "-h" && !slices.Contains(c.flags, name) {
			c.flags = append(c.flags, name)
		}
	}
	for line := range strings.Lines(help) {
		_, rest, ok := strings.Cut(line, " rebound "+c.name+" ")
		if !ok || !strings.HasPrefix(line, "usage:") && !strings.HasPrefix(line, "       rebound") {
			continue
		}
		for _, w := range strings.FieldsFunc(optional.ReplaceAllString(rest, ""), func(r rune) bool { return strings.ContainsRune(" |\n", r) }) {
			if plainWord.MatchString(w) && !slices.Contains(c.words, w) {
				c.words = append(c.words, w)
			}
		}
	}
}

// runCompletion is `rebound completion`; it returns the exit code.
func runCompletion(args []string, stdout, stderr io.Writer) int {
	shells := map[string]func(io.Writer, []completable){"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	if len(args) == 1 && shells[args[0]] != nil {
		shells[args[0]](stdout, completables())
		return 0
	}
	if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		fmt.Fprint(stdout, completionUsage)
		return 0
	}
	fmt.Fprint(stderr, completionUsage)
	return 2
}

func bashCompletion(w io.Writer, list []completable) {
	var names, cases strings.Builder
	for _, c := range list {
		names.WriteString(" " + c.name)
		fmt.Fprintf(&cases, "    %s) flags='%s' words='%s' ;;\n", c.name, strings.Join(c.flags, " "), strings.Join(c.words, " "))
	}
	fmt.Fprintf(w, `_rebound() {
  local cur=${COMP_WORDS[COMP_CWORD]} flags='--help' words='%s'
  [ "$COMP_CWORD" -gt 1 ] && case ${COMP_WORDS[1]} in
%s    *) flags= words= ;;
  esac
  case $cur in -*) words=$flags ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _rebound rebound
`, names.String()[1:], cases.String())
}

func zshCompletion(w io.Writer, list []completable) {
	fmt.Fprint(w, "#compdef rebound\n_rebound() {\n  local -a commands\n  commands=(\n")
	for _, c := range list {
		fmt.Fprintf(w, "    %s\n", quoted(c.name+":"+c.about))
	}
	fmt.Fprint(w, "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  case $words[2] in\n")
	for _, c := range list {
		end := ""
		if len(c.words) > 0 { // and no files
			end = "; return"
		}
		fmt.Fprintf(w, "    %s) compadd -- %s%s ;;\n", c.name, strings.Join(append(slices.Clone(c.words), c.flags...), " "), end)
	}
	fmt.Fprint(w, "  esac\n  _files\n}\ncompdef _rebound rebound\n")
}

func fishCompletion(w io.Writer, list []completable) {
	for _, c := range list {
		fmt.Fprintf(w, "complete -c rebound -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quoted(c.about))
		for _, f := range c.flags {
			kind := "-l"
			if !strings.HasPrefix(f, "--") {
				kind = "-s"
			}
			fmt.Fprintf(w, "complete -c rebound -n '__fish_seen_subcommand_from %s' %s %s\n", c.name, kind, strings.TrimLeft(f, "-"))
		}
		if len(c.words) > 0 {
			fmt.Fprintf(w, "complete -c rebound -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", c.name, strings.Join(c.words, " "))
		}
	}
}

// quoted is a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
