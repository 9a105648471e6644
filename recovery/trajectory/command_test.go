package trajectory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// A plain line is read as the parser would read it.
func FuzzPlain(f *testing.F) {
	for _, line := range []string{
		"ls", "git commit -m x", "sudo -u www env make -j4 test", "sleep 5", "timeout 10 pytest -q tests/test_a.py::test_b", "python3 -m http.server 8080",
		"npm  run   build", "if true", "fi", "time ls", "export A", "let 1+1", "echo a@b,c %d +x", "coproc ls", "kubectl -n a get pods", "cd a/b/../c", "[ a", "! ls",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.TrimSpace(line)
		if len(line) > maxLine {
			return
		}
		short := plain(line)
		if short == nil {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
		if err != nil {
			t.Fatalf("%q: the parser says %v", line, err)
		}
		if got, want := places(short), places(file); !slices.Equal(got, want) {
			t.Fatalf("%q: places %v, want %v", line, got, want)
		}
		got, want := ParseCommand(line), readCommand(line, file)
		if !slices.Equal(got.Programs, want.Programs) || got.Pauses != want.Pauses || got.OnlyReads != want.OnlyReads || got.Edits != want.Edits ||
			got.Compound != want.Compound || got.filters != want.filters || got.Key() != want.Key() {
			t.Errorf("%q: %+v, key %q; want %+v, key %q", line, got, got.Key(), want, want.Key())
		}
	})
}

// places are where the nodes of a file begin and end.
func places(f *syntax.File) (out []string) {
	syntax.Walk(f, func(n syntax.Node) bool {
		if n != nil {
			out = append(out, fmt.Sprintf("%T %v-%v %d", n, n.Pos(), n.End(), n.Pos().Offset()))
		}
		return true
	})
	return out
}
