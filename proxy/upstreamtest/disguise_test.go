package upstreamtest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Each disguise has its server's model list, and its particular answers.
func TestDisguises(t *testing.T) {
	const (
		plain   = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
		begun   = `{"model":"m","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"Well"}]}`
		tools   = `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f"}}]}`
		huge    = `{"model":"m","max_tokens":100000000,"messages":[{"role":"user","content":"hello"}]}`
		limited = `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`
	)
	long := `{"model":"m","messages":[{"role":"user","content":"The code word is X1. ` + strings.Repeat("word ", 8000) + `What is the code word?"}]}`
	for _, c := range []struct {
		as, list, body string
		status         int
		has            string
	}{
		{"llama.cpp", `"owned_by":"llamacpp"`, begun, 200, "Well" + upstreamtest.PrefillElsewhere[:20]},
		{"llama.cpp", `"n_ctx":4096`, long, 400, "maximum context length is 4096"},
		{"vllm", `"max_model_len":8192`, tools, 400, "--enable-auto-tool-choice"},
		{"vllm", `"owned_by":"vllm"`, huge, 400, "maximum context length is 8192"},
		{"azure", `"owned_by":"mock"`, limited, 400, "Use 'max_completion_tokens' instead"},
		{"openrouter", `"context_length":131072`, huge, 400, "maximum context length is 131072"},
		{"openrouter", `"context_length":131072`, tools, 200, "_c1"},
		{"deepseek", `"owned_by":"deepseek"`, begun, 400, "prefix mode on"},
		{"deepseek", `"owned_by":"deepseek"`, huge, 400, "[1, 8192]"},
		{"silent", `"owned_by":"library"`, long, 200, `"prompt_tokens":4096`},
		{"silent", `"owned_by":"library"`, plain, 200, `"finish_reason":"stop"`},
	} {
		up := upstreamtest.New(upstreamtest.Options{As: c.as}).Start(t)
		ask := func(method, path, body string) (int, string) {
			req, _ := http.NewRequest(method, up.URL()+path, strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer k")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			raw, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(raw)
		}
		if _, list := ask("GET", "/v1/models", ""); !strings.Contains(list, c.list) {
			t.Errorf("%s lists %s, want %s", c.as, list, c.list)
		}
		if status, got := ask("POST", "/v1/chat/completions", c.body); status != c.status || !strings.Contains(got, c.has) {
			t.Errorf("%s answers %d, %.300s; want %d, %s", c.as, status, got, c.status, c.has)
		}
		if status, got := ask("POST", "/v1/chat/completions", strings.Replace(plain, `"m"`, `"m@429"`, 1)); status != 429 {
			t.Errorf("%s: a script does not come first: %d, %s", c.as, status, got)
		}
	}
	if n := len(upstreamtest.Disguises()); n != 6 {
		t.Errorf("%d disguises", n)
	}
}
