//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSplice(t *testing.T) {
	page := "# T\n" + figuresBegin + "old\n" + figuresEnd + "after\n"
	want := "# T\n" + figuresBegin + "\nnew\n" + figuresEnd + "after\n"
	for range 2 { // the second time into its own output
		got, err := splice([]byte(page), []byte("new\n"))
		if err != nil || string(got) != want {
			t.Fatalf("%v, %s", err, got)
		}
		page = string(got)
	}
	for _, page := range []string{"", figuresBegin, figuresEnd + figuresBegin} {
		if got, err := splice([]byte(page), nil); err == nil {
			t.Errorf("%q: %s", page, got)
		}
	}
}

func TestSave(t *testing.T) {
	r, _ := paired()
	report := newReport(options{rounds: 3})
	report.results, report.gates = r, checkGates(r)
	report.targets = []described{{nginx, "1"}, {rebound, "2"}}
	dir := t.TempDir()
	o := options{json: filepath.Join(dir, "o.json"), markdown: filepath.Join(dir, "o.md")}
	if err := report.save(o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(o.json)
	if err != nil || !json.Valid(b) {
		t.Errorf("%v, %s", err, b)
	}
	figures, err := os.ReadFile(o.markdown)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(figures), dir) {
		t.Error("the figures name a path of this machine")
	}
	if !strings.Contains(string(figures), "go run ./e2e/bench -rounds 3") || !strings.Contains(string(figures), "| Rebound | 60 [20, 60] |") {
		t.Errorf("figures:\n%s", figures)
	}
}

func TestParseFlags(t *testing.T) {
	for args, want := range map[string]options{
		"":                    {rounds: 3},
		"-quick":              {rounds: 1, quick: true},
		"-quick -rounds 4":    {rounds: 4, quick: true},
		"-gate -o a.json":     {rounds: 3, gate: true, json: "a.json"},
		"-targets direct":     {rounds: 3, targets: "direct"},
		"-md f -scenarios 1k": {rounds: 3, markdown: "f", only: "1k"},
	} {
		if want.targets == "" {
			want.targets = "direct,nginx,reverseproxy,rebound"
		}
		if got, err := parseFlags(strings.Fields(args)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
	for _, args := range []string{"-targets apache", "-rounds -1", "extra"} {
		if got, err := parseFlags(strings.Fields(args)); err == nil {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
