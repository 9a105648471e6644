package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A session in which the same call fails seven times, with another line number of the
// shell each time, is told firmly, and stopped.
func TestPlay(t *testing.T) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	list := []message{{"system", "Put one command in a code block."}, {"user", "Go to the folder."}}
	for i := range 7 {
		list = append(list, message{"assistant", "Next.\n```\ncd fastjson\n```"}, message{"user", fmt.Sprintf("/bin/bash: line %d: cd: fastjson: No such file or directory", 100+7*i)})
	}
	raw, err := json.Marshal(map[string]any{"id": "s", "messages": list, "solved": false})
	if err != nil {
		t.Fatal(err)
	}
	var packed, out bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(append(raw, '\n'))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "some.jsonl.gz")
	if err := os.WriteFile(name, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := play(&out, []string{name}, 1, 1, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"some: 1 sessions, 8 turns", "1 runs of 6 equal calls", "--- 1. s, message "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
