package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// An upstream that an operator has disabled gets no forwarded request either, and a model's mode applies to them too.
func TestForwardsAreSwitched(t *testing.T) {
	var disabled, spare atomic.Int32
	server := func(asked *atomic.Int32) *httptest.Server {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if asked.Add(1); gjson.GetBytes(body, "model").Str == "plain" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"theirs"}]}`)
		}))
		t.Cleanup(up.Close)
		return up
	}
	g := startYAML(t, `
listen: 127.0.0.1:0
default_upstream: first
recovery: {backoff_min: 1ms, backoff_max: 2ms}
upstreams:
  first: {url: "`+server(&disabled).URL+`/v1", passthrough: true, disabled: true}
  spare: {url: "`+server(&spare).URL+`/v1", passthrough: true}
models:
  e: {targets: [{upstream: first}, {upstream: spare}]}
  plain: {mode: off, targets: [{upstream: spare}]}
`)
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
		asked              int32 // requests at the spare upstream
	}{
		{"POST", "/v1/embeddings", `{"model":"e","input":"a"}`, 200, "", 1},
		{"POST", "/v1/completions", `{"model":"e","prompt":"a"}`, 200, "", 1},
		{"POST", "/v1/embeddings", `{"model":"other","input":"a"}`, 503, "target_disabled", 0},
		{"POST", "/v1/completions", `{"model":"other","prompt":"a"}`, 503, "target_disabled", 0},
		{"GET", "/v1/batches", "", 503, "target_disabled", 0},
		{"GET", "/v1/models", "", 200, "", 0},
		{"POST", "/v1/embeddings", `{"model":"plain","input":"a"}`, 503, "", 1},
	} {
		spare.Store(0)
		resp, body, _ := g.fetch(c.method, c.path, c.body, nil)
		if resp.StatusCode != c.status || gjson.GetBytes(body, "error.code").Str != c.code || spare.Load() != c.asked || disabled.Load() != 0 ||
			c.code != "" && resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s %s: %d %s; the spare upstream was asked %d times, the disabled one %d", c.method, c.path, c.body, resp.StatusCode, body, spare.Load(), disabled.Load())
		}
		disabled.Store(0)
	}
}

// A client whose request is only forwarded, as its model's mode says, hears nothing before its upstream answers: an error
// still has its status.
func TestSwitchedOffIsNotKeptAwake(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(up.Close)
	for _, mode := range []string{"annotate", "observe", "off"} {
		g := startYAML(t, `
listen: 127.0.0.1:0
stream: {keepalive_after: 20ms, keepalive_every: 20ms}
upstreams:
  default: {url: "`+up.URL+`/v1", passthrough: true}
models: {m: {mode: `+mode+`, targets: [{upstream: default}]}}
`)
		resp, body, err := g.fetch("POST", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, nil)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || len(body) > 0 {
			t.Errorf("mode %s: status %d, %q, %v", mode, resp.StatusCode, body, err)
		}
	}
}
