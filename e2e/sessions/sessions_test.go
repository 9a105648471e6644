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
	for _, want := range []string{"some: 1 sessions, 8 turns", "1 runs of 6 equal calls", "--- 1. s, message ", "NOTE   ("} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

// Sessions of the Responses and of the Messages API are read like those of Chat
// Completions: calls in parallel make one turn.
func TestFormats(t *testing.T) {
	type item map[string]any
	items := []item{{"type": "message", "role": "user", "content": "Go to the folder."}}
	blocks := []item{{"role": "user", "content": "Go to the folder."}}
	for i := range 7 {
		id, other := fmt.Sprint("a", i), fmt.Sprint("b", i)
		items = append(items,
			item{"type": "reasoning", "id": fmt.Sprint("rs_", i), "summary": []any{}},
			item{"type": "function_call", "call_id": id, "name": "shell", "arguments": `{"command":"cd fastjson"}`},
			item{"type": "function_call", "call_id": other, "name": "shell", "arguments": `{"command":"pwd"}`},
			item{"type": "function_call_output", "call_id": id, "output": "/bin/bash: line 1: cd: fastjson: No such file or directory"},
			item{"type": "function_call_output", "call_id": other, "output": "/app"})
		blocks = append(blocks,
			item{"role": "assistant", "content": []item{
				{"type": "tool_use", "id": id, "name": "Bash", "input": item{"command": "cd fastjson"}},
				{"type": "tool_use", "id": other, "name": "Bash", "input": item{"command": "pwd"}}}},
			item{"role": "user", "content": []item{
				{"type": "tool_result", "tool_use_id": id, "is_error": true, "content": "/bin/bash: line 1: cd: fastjson: No such file or directory"},
				{"type": "tool_result", "tool_use_id": other, "content": "/app"}}})
	}
	name := filepath.Join(t.TempDir(), "formats.jsonl")
	var file bytes.Buffer
	for _, s := range []item{{"id": "r", "input": items, "instructions": "Help."}, {"id": "m", "format": "messages", "messages": blocks, "system": "Help."}} {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(raw, '\n'))
	}
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := play(&out, []string{name}, 0, 1, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"formats: 2 sessions, 16 turns", "2 runs of 6 equal calls, 0 not told firmly"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
