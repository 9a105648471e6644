package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// Clients of the Messages API ask for a larger context window than a model's usual one with a header. Such a request is not
// shortened to the usual window that others ran into.
func TestLongContext(t *testing.T) {
	t.Parallel()
	const usual = 10_000 // tokens of four bytes
	var mu sync.Mutex
	var last string // the latest accepted request
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tokens := len(body) / 4
		w.Header().Set("Content-Type", "application/json")
		if tokens > usual && !strings.Contains(r.Header.Get("Anthropic-Beta"), "context-1m") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: %d tokens > %d maximum"}}`, tokens, usual)
			return
		}
		mu.Lock()
		last = string(body)
		mu.Unlock()
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":2}}`, tokens)
	}))
	t.Cleanup(up.Close)
	g := launch(t, strings.Replace(strings.ReplaceAll(quick, "UP/", up.URL+"/"), "upstreams:\n", fmt.Sprintf("upstreams:\n  claude: {format: anthropic, url: %q, passthrough: true, profile: hosted}\n", up.URL), 1))
	ask := func(task string, steps int, beta string) reply {
		t.Helper()
		messages := []string{fmt.Sprintf(`{"role":"user","content":%q}`, task)}
		for i := range steps {
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"cat","input":{"path":"f%d"}}]}`, i, i),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 300)))
		}
		body := `{"model":"m","max_tokens":100,"tools":[{"name":"cat","input_schema":{"type":"object"}}],"messages":[` + strings.Join(messages, ",") + `]}`
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/messages", strings.NewReader(body))
		req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sk-ant"}, "Anthropic-Version": {"2023-06-01"}}
		if beta != "" {
			req.Header.Set("Anthropic-Beta", beta)
		}
		resp, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		r := read(resp)
		mu.Lock()
		defer mu.Unlock()
		if !r.ok() {
			t.Errorf("%s, %d steps: %v", task, steps, r)
		}
		if beta != "" && gjson.Get(last, "messages").Raw != gjson.Get(body, "messages").Raw {
			t.Errorf("%s, %d steps: the request went upstream changed", task, steps)
		}
		return r
	}
	fitted := false
	for steps := range 16 {
		fitted = ask("A", steps, "").recovery() == "fit" || fitted
	}
	if !fitted {
		t.Error("no request ran into the usual window: the test shows nothing")
	}
	for steps := range 16 {
		ask("B", steps, "context-1m-2025-08-07")
	}
}

// What the provider refuses without a beta is not left out for clients that ask for that beta.
func TestEditsOfOneBeta(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var last string // the latest accepted request
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if gjson.GetBytes(body, "tools.0.input_examples").Exists() && !strings.Contains(r.Header.Get("Anthropic-Beta"), "advanced-tool-use") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.input_examples: Extra inputs are not permitted"}}`)
			return
		}
		mu.Lock()
		last = string(body)
		mu.Unlock()
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`)
	}))
	t.Cleanup(up.Close)
	g := launch(t, strings.Replace(strings.ReplaceAll(quick, "UP/", up.URL+"/"), "upstreams:\n", fmt.Sprintf("upstreams:\n  claude: {format: anthropic, url: %q, passthrough: true, profile: hosted}\n", up.URL), 1))
	for i, c := range []struct {
		beta, attempts string
		examples       bool // reach the upstream
	}{{"", "2", false}, {"", "1", false}, {"advanced-tool-use-2025-11-20", "1", true}, {"", "1", false}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/messages",
			strings.NewReader(`{"model":"m","max_tokens":100,"tools":[{"name":"cat","input_schema":{"type":"object"},"input_examples":[{"path":"a"}]}],"messages":[{"role":"user","content":"Go."}]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sk-ant"}, "Anthropic-Version": {"2023-06-01"}}
		if c.beta != "" {
			req.Header.Set("Anthropic-Beta", c.beta)
		}
		resp, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		r := read(resp)
		mu.Lock()
		if got := gjson.Get(last, "tools.0.input_examples").Exists(); !r.ok() || r.attempts() != c.attempts || got != c.examples {
			t.Errorf("request %d: %v; upstream %s", i+1, r, last)
		}
		mu.Unlock()
	}
}
