package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// written matches a command line of rebound in a document, in a code span or a block of code. What an ellipsis, a pipe, an
// operator, a comment or a closing mark ends is no part of it.
var written = regexp.MustCompile("(?:bin/|[`$] |[`(\"])rebound ([a-z-][^`|&;<>#(){}…\"\n]*)")

// Every command line in the documents names commands and flags that exist.
func TestDocumentsNameCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../configs/default.yaml") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(string(text), -1) {
			args := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(m[1])) // brackets mark what may be left out
			if at := slices.Index(args, "--"); at >= 0 {
				args = args[:at]
			}
			found++
			if why := unknownIn(args); why != "" {
				t.Errorf("%s: rebound %s: %s", filepath.Base(page), strings.TrimSpace(m[1]), why)
			}
		}
	}
	if found < 60 {
		t.Errorf("%d command lines are found: this test looks in the wrong place", found)
	}
}

// unknownIn returns what a command line names that does not exist, or "".
func unknownIn(args []string) string {
	root := (&program{env: noEnv}).commands()
	root.InitDefaultCompletionCmd("completion")
	c, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "there is no command " + rest[0]
	}
	for _, a := range rest {
		name, _, _ := strings.Cut(strings.TrimRight(a, ".,:"), "=")
		if flag, ok := strings.CutPrefix(name, "--"); ok && c.Flags().Lookup(flag) == nil && !inherited(c, flag) {
			return "there is no flag " + name
		}
	}
	return ""
}

// inherited reports whether a parent of a command has a flag for it, or cobra adds it.
func inherited(c *cobra.Command, flag string) bool {
	return flag == "help" || flag == "version" || c.InheritedFlags().Lookup(flag) != nil
}

// Every response and request header is in the documents.
func TestHeadersAreDocumented(t *testing.T) {
	pages := document(t, "configuration.md") + document(t, "recoveries.md") + document(t, "operations.md")
	found := 0
	for _, s := range sources(t) {
		if s.test() || !below(s.dir, []string{"proxy"}) || below(s.dir, []string{"proxy/upstreamtest"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if e, ok := n.(*ast.BasicLit); ok {
				if name, _ := text(e); regexp.MustCompile("^X-Rebound-[A-Za-z]+$").MatchString(name) {
					if found++; !strings.Contains(pages, "`"+name) {
						t.Errorf("%s: %s is in no document", s.at(e.Pos()), name)
					}
				}
			}
			return true
		})
	}
	if found < 8 {
		t.Errorf("%d headers are found: this test looks in the wrong place", found)
	}
}

// The log lines in operations.md are those of the program: each of them is written somewhere, and none that warns is missing.
func TestLogLinesAreDocumented(t *testing.T) {
	_, section, _ := strings.Cut(document(t, "operations.md"), "\n## What log lines mean")
	section, _, _ = strings.Cut(section, "\n## ")
	literals := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() || below(s.dir, []string{"e2e", "store/storetest", "proxy/upstreamtest"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if e, ok := n.(*ast.BasicLit); ok {
				line, _ := text(e)
				literals[line] = true
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if line, written := text(call.Args[0]); ok && written && (f.Sel.Name == "Warn" || f.Sel.Name == "Error") && !strings.Contains(section, "`"+line+"`") {
				t.Errorf("%s: operations.md does not explain the log line %q", s.at(call.Pos()), line)
			}
			return true
		})
	}
	lines := 0
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[min(1, len(cells)-1)], -1) {
			if lines++; !literals[m[1]] {
				t.Errorf("operations.md explains a log line %q, which nothing writes", m[1])
			}
		}
	}
	if lines < 20 {
		t.Errorf("%d log lines are found: this test looks in the wrong place", lines)
	}
}
