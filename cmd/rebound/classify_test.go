package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// classifyLines runs the command and returns its exit code, its lines and its errors.
func classifyLines(t *testing.T, args []string, in string) (int, []map[string]any, string) {
	t.Helper()
	out, problems, code := runWith(noEnv, in, append([]string{"classify"}, args...)...)
	var rows []map[string]any
	for line := range strings.Lines(out) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("output line %q: %v", line, err)
		}
		rows = append(rows, row)
	}
	return code, rows, problems
}

func TestClassifyAnswersEachLine(t *testing.T) {
	in := `{"id":"a","provider":"x","status":400,"body":{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 202868 tokens.","code":"context_length_exceeded"}},"class":"ignored"}

{"id":7,"status":"429","headers":{"Retry-After":12,"x-should-retry":["true"]},"body":"slow down"}
{"id":"s","status":200,"stream":true,"body":"data: {\"error\":{\"message\":\"can only afford 0 more; fewer max_tokens\",\"code\":402}}\n\n"}
{"id":"e","status":200,"body":""}
{"status":200,"body":"{\"a\": [1,"}
`
	code, rows, problems := classifyLines(t, nil, in)
	if code != 0 || problems != "" || len(rows) != 5 {
		t.Fatalf("code %d, %d rows, complaints %q", code, len(rows), problems)
	}
	want := []struct {
		id    any
		class string
	}{{"a", "context_length_exceeded"}, {7.0, "rate_limit"}, {"s", "quota_exhausted"}, {"e", "empty_response"}, {nil, "stream_cut"}}
	for i, w := range want {
		if rows[i]["id"] != w.id || rows[i]["class"] != w.class || rows[i]["rule"] == "" || rows[i]["plan"] == nil {
			t.Errorf("row %d: got %v, want id %v class %s", i, rows[i], w.id, w.class)
		}
	}
	if facts := rows[0]["facts"].(map[string]any); facts["limit_tokens"] != 128000.0 || facts["requested_tokens"] != 202868.0 {
		t.Errorf("facts %v", facts)
	}
	if facts := rows[1]["facts"].(map[string]any); facts["retry_after_s"] != 12.0 {
		t.Errorf("facts %v", facts)
	}
	// A zero in the text is a fact.
	if facts := rows[2]["facts"].(map[string]any); facts["affordable_output"] != 0.0 {
		t.Errorf("facts %v", facts)
	}
}

func TestClassifyGoesOnAfterBadLines(t *testing.T) {
	in := "{\"id\":1,\"status\":500}\nnot json\n{\"id\":2}\n[1]\n{\"id\":3,\"status\":\"many\"}\n" +
		`{"id":6,"status":500,"stream":"data: x"}` + "\n" + `{"id":4,"status":500,"body":"` + strings.Repeat("x", maxClassifyLine) + "\"}\n{\"id\":5,\"status\":503,\"body\":null}"
	code, rows, problems := classifyLines(t, []string{"-"}, in)
	if code != 1 || len(rows) != 2 {
		t.Fatalf("code %d, rows %v, complaints %q", code, rows, problems)
	}
	for _, n := range []string{"line 2:", "line 3:", "line 4:", "line 5:", "line 6: stream: is a string, and must be a bool\n", "line 7:"} {
		if !strings.Contains(problems, n) {
			t.Errorf("no complaint about %s in %q", n, problems)
		}
	}
}

func TestClassifyUnusableInput(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		in   string
	}{
		"empty":         {nil, "\n \n"},
		"nothing":       {nil, "hello\nworld\n"},
		"no file":       {[]string{filepath.Join(t.TempDir(), "none")}, ""},
		"too many":      {[]string{"a", "b"}, ""},
		"unknown flag":  {[]string{"--fast"}, ""},
		"one long line": {nil, strings.Repeat("x", maxClassifyLine+1)},
	} {
		if code, rows, problems := classifyLines(t, c.args, c.in); code != 2 || len(rows) != 0 || problems == "" {
			t.Errorf("%s: code %d, rows %v, complaints %q", name, code, rows, problems)
		}
	}
}

func TestClassifyReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(`{"id":"x","status":401,"body":""}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, rows, _ := classifyLines(t, []string{path}, "")
	if code != 0 || len(rows) != 1 || rows[0]["class"] != "auth" {
		t.Fatalf("code %d, rows %v", code, rows)
	}
}
