//go:build unix

package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// If the command for a key fails, another target answers, and the event has the reason.
func TestKeyCommandFails(t *testing.T) {
	t.Parallel()
	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
	g := launch(t, strings.Replace(text(up, modelMap("m", "cloud prim", "default spare")), "upstreams:",
		"upstreams:\n  cloud: {url: \""+up.URL()+"/v1\", profile: hosted, keys: [{name: main, command: [/bin/sh, -c, \"echo no account >&2; exit 3\"], ttl: 1h}]}", 1))
	if r := g.must(chat("m", false, "")); !strings.HasPrefix(r.target(), "default/spare") {
		t.Errorf("answered by %s", r.target())
	}
	eventually(t, 10*time.Second, "the failure is reported", func() bool {
		return len(g.log.lines(t, func(l map[string]any) bool {
			cause, _ := l["cause"].(string)
			return l["event"] == "error_recovery_attempt" && l["class"] == "auth" && strings.Contains(cause, "no account")
		})) == 1
	})
	if n := len(up.Requests("prim")); n != 0 {
		t.Errorf("the upstream was asked %d times without a key", n)
	}
	resp, err := http.Post(g.url+"/v1/embeddings", "application/json", strings.NewReader(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "upstream_credentials") {
		t.Errorf("embeddings: status %d, %s, %v", resp.StatusCode, body, err)
	}
}
