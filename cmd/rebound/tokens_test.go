package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// countTokens runs the command and returns its exit code, its result and its errors.
func countTokens(t *testing.T, args []string, in string) (int, map[string]any, string) {
	t.Helper()
	out, problems, code := runWith(noEnv, in, append([]string{"tokens"}, args...)...)
	var result map[string]any
	if out != "" && json.Unmarshal([]byte(out), &result) != nil {
		return code, map[string]any{"usage": out}, problems
	}
	return code, result, problems
}

func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "request.json")
	const chat = `{"model":"gpt-3.5-turbo","messages":[{"role":"user","content":"hello world"}]}`
	if err := os.WriteFile(file, []byte(chat), 0o600); err != nil {
		t.Fatal(err)
	}
	const tools = `{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}],"tools":[{"type":"function","function":{"name":"foo"}}]}`
	tests := map[string]struct {
		args     string
		in       string
		tokens   float64
		exact    bool
		encoding string
	}{
		"request":            {"", chat, 9, true, "cl100k_base"},
		"request from file":  {file, "", 9, true, "cl100k_base"},
		"dash":               {"-", chat, 9, true, "cl100k_base"},
		"other model":        {"--model claude-sonnet-4-5 " + file, "", 9, false, "o200k_base"},
		"model after file":   {file + " --model=gpt-4o", "", 9, true, "o200k_base"},
		"tools are not sure": {"", tools, 32, false, "o200k_base"},
		"no model":           {"", `{"messages":[{"role":"user","content":"hello world"}]}`, 9, false, "o200k_base"},
		"text":               {"--text", "hello world", 2, true, "o200k_base"},
		"text for a model":   {"--text --model gpt-4", "hello world\n", 3, true, "cl100k_base"},
		"text of others":     {"--model llama3 --text", "hello world", 2, false, "o200k_base"},
		"text of a request":  {"--text", "{}", 1, true, "o200k_base"},
		"no text":            {"--text", "", 0, true, "o200k_base"},
	}
	for name, tt := range tests {
		code, got, problems := countTokens(t, strings.Fields(tt.args), tt.in)
		if code != 0 || problems != "" || got["tokens"] != tt.tokens || got["exact"] != tt.exact || got["encoding"] != tt.encoding || len(got) != 3 {
			t.Errorf("%s: code %d, %v, complaints %q; want %v tokens, exact %v, %s", name, code, got, problems, tt.tokens, tt.exact, tt.encoding)
		}
	}
}

func TestTokensRefuses(t *testing.T) {
	for args, in := range map[string]string{
		"":                "",
		"-":               "no json",
		"--model gpt-4o":  `[]`,
		"--model":         `{}`,
		"--text=yes":      "a",
		"--limit 5":       `{}`,
		"one two":         "",
		"/does/not/exist": "",
	} {
		code, got, problems := countTokens(t, strings.Fields(args), in)
		if code != 2 || got != nil || !strings.HasPrefix(problems, "rebound tokens: ") {
			t.Errorf("%q: code %d, %v, complaints %q", args, code, got, problems)
		}
	}
	code, got, problems := countTokens(t, nil, `{"model":"gpt-4o"}`)
	if code != 1 || got["exact"] != false || !strings.Contains(problems, "no messages") {
		t.Errorf("without messages: code %d, %v, complaints %q", code, got, problems)
	}
	if code, got, _ := countTokens(t, []string{"--help"}, ""); code != 0 || !strings.Contains(fmt.Sprint(got["usage"]), "--model MODEL") {
		t.Errorf("help: code %d, %v", code, got)
	}
	var out, complaints bytes.Buffer
	p := program{env: noEnv, stdin: iotest.ErrReader(errors.New("broken pipe")), stdout: &out, stderr: &complaints}
	if code := p.run([]string{"tokens"}); code != 2 || !strings.Contains(complaints.String(), "broken pipe") {
		t.Errorf("reading fails: code %d, complaints %q", code, complaints.String())
	}
}
