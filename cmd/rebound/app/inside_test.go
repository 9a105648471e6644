package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// With admin.listen, the operator's paths are only at that address, and nothing else is there. A stop closes both.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	g := launch(t, text(upstreamtest.New(upstreamtest.Options{}).Start(t), "admin: {listen: \"127.0.0.1:0\"}"))
	inside := "http://" + g.AdminAddr().String()
	if inside == g.url {
		t.Fatal("there is one address")
	}
	for _, c := range []struct {
		url    string
		status int
		says   string
	}{
		{inside + "/rebound/", 200, "<html"},
		{inside + "/rebound/sessions", 200, `"sessions"`},
		{inside + "/metrics", 200, "rebound_"},
		{inside + "/v1/models", 404, "unknown_path"},
		{g.url + "/rebound/", 404, "unknown_path"},
		{g.url + "/rebound/sessions", 404, "unknown_path"},
		{g.url + "/metrics", 404, "unknown_path"},
		{g.url + "/healthz", 200, "ok"},
	} {
		resp, err := g.client.Get(c.url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s: %d %.200s", c.url, resp.StatusCode, body)
		}
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{g.url, inside} {
		if resp, err := http.Get(url + "/healthz"); err == nil {
			resp.Body.Close()
			t.Errorf("after the stop %s answers", url)
		}
	}
}
