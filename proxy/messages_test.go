package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestMessagesErrors shows that the gateway's own errors have Anthropic's envelope on the
// paths of the Messages API, and nowhere else.
func TestMessagesErrors(t *testing.T) {
	g := start(t, "\nauth: {keys: [{name: all, env: KEY_A}]}\n")
	dead := startAt(t, "http://127.0.0.1:1")
	other := startYAML(t, "{listen: 127.0.0.1:0, upstreams: {default: {url: http://127.0.0.1:1/v1}}}")
	for _, c := range []struct {
		name, path, body string
		g                *gateway
		status           int
		kind, code       string
	}{
		{"no key", "/v1/messages?beta=true", `{}`, g, 401, "authentication_error", "invalid_gateway_key"},
		{"no key, counting", "/v1/messages/count_tokens", `{}`, g, 401, "authentication_error", "invalid_gateway_key"},
		{"below a prefix", "/team/v1/messages", `{}`, g, 401, "authentication_error", "invalid_gateway_key"},
		{"nothing there", "/team/v1/messages/batches", `{}`, g, 404, "not_found_error", "unknown_path"},
		{"an impossible model", "/v1/messages", `{"model":"` + strings.Repeat("m", 1025) + `"}`, dead, 400, "invalid_request_error", "invalid_model"},
		{"nobody there", "/v1/messages", `{"model":"m"}`, dead, 502, "api_error", "server_error"},
		{"no upstream", "/v1/messages", `{"model":"m"}`, other, 404, "not_found_error", "no_upstream"},
		{"messages of a thread", "/v1/threads/thread_1/messages", `{}`, g, 401, "", "invalid_gateway_key"},
	} {
		r := c.g.post(context.Background(), c.path, c.body, http.Header{"X-Api-Key": {"sk-stranger"}})
		if r.status != c.status || gjson.GetBytes(r.body, "error.code").Str != c.code {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
		if c.kind == "" {
			if gjson.GetBytes(r.body, "error.type").Str != "rebound_error" {
				t.Errorf("%s: not OpenAI's envelope: %s", c.name, r.body)
			}
			continue
		}
		if gjson.GetBytes(r.body, "type").Str != "error" || gjson.GetBytes(r.body, "error.type").Str != c.kind || gjson.GetBytes(r.body, "error.message").Str == "" {
			t.Errorf("%s: not Anthropic's envelope: %s", c.name, r.body)
		}
		if id := gjson.GetBytes(r.body, "request_id").Str; id != r.header.Get("Request-Id") || id != r.header.Get("X-Rebound-Request") || id == "" && c.code != "unknown_path" {
			t.Errorf("%s: request_id %q, headers %q and %q", c.name, id, r.header.Get("Request-Id"), r.header.Get("X-Rebound-Request"))
		}
		if c.code == "unknown_path" && strings.HasSuffix(strings.TrimSuffix(gjson.GetBytes(r.body, "error.message").Str, "."), "/v1") {
			t.Errorf("%s: clients of this API add /v1 themselves: %s", c.name, r.body)
		}
	}
}

// An upstream that knows only two roles gets a system message in the middle, as Claude Code sends it, from the user.
func TestMessagesSystemInTheMiddle(t *testing.T) {
	t.Parallel()
	r := &recorded{}
	r.answer = func(body string) (int, string) {
		if strings.Contains(body, `"role":"system"`) {
			return 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.role: Input should be 'user' or 'assistant'"}}`
		}
		return 200, said
	}
	m := upstreamOf(t, r, "").say("/v1/messages", `{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"Go."},{"role":"system","content":"# Environment"}]}`, nil)
	if sent := r.sent(); m.text != "Done." || len(sent) != 2 || !strings.Contains(sent[1], `{"role":"user","content":"# Environment"}`) {
		t.Errorf("%d %s after %d attempts", m.status, m.raw, len(sent))
	}
}
