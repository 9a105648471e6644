package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
)

// docs/tools.md shows what the offline tools print.
func TestDocumentShowsWhatIsPrinted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "long.json")
	unpacked := regexp.MustCompile(`^    \$ gunzip -c (\S+) >long\.json$`)
	piped := regexp.MustCompile(`^    \$ echo '(.*)' \| bin/rebound (.*)$`)
	direct := regexp.MustCompile(`^    \$ bin/rebound (tokens|compress)( .*)? long\.json`)
	shown := 0
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		var stdin string
		var args []string
		if m := unpacked.FindStringSubmatch(line); m != nil {
			if err := os.WriteFile(file, recoverytest.Gunzip(t, filepath.Join("..", "..", m[1])), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if m := piped.FindStringSubmatch(line); m != nil {
			stdin, args = m[1]+"\n", strings.Fields(m[2])
		} else if m := direct.FindStringSubmatch(line); m != nil {
			args = append(append([]string{m[1]}, strings.Fields(m[2])...), file)
		}
		if args == nil {
			continue
		}
		shown++
		var out, errs bytes.Buffer
		if code := run(args, strings.NewReader(stdin), &out, &errs); code > 1 {
			t.Errorf("%s: exit code %d, %s", args[0], code, &errs)
		}
		got := out.String()
		if args[0] == "compress" { // which writes the request to standard output
			got = errs.String()
		}
		if want := strings.TrimPrefix(lines[i+1], "    "); strings.TrimSpace(got) != want {
			t.Errorf("%s prints\n%s\nand docs/tools.md shows\n%s", args[0], got, want)
		}
	}
	if shown < 4 {
		t.Errorf("docs/tools.md shows %d commands that are read", shown)
	}
}
