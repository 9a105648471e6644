package upstream

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// What ends here, or is the gateway's own, reaches no upstream, however its
// headers are made; what the operator has configured does.
func TestHeadersForUpstreams(t *testing.T) {
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	defer server.Close()
	client := http.Header{
		"Connection": {"keep-alive, X-Named"}, "X-Named": {"1"}, "Keep-Alive": {"1"}, "Proxy-Authorization": {"Basic x"}, "Te": {"trailers"},
		"Upgrade": {"h2c"}, "Expect": {"100-continue"}, "X-Rebound-Mode": {"off"}, "X-Rebound-Session": {"s"},
		"Authorization": {"Bearer client"}, "Cookie": {"c"}, "X-Kept": {"1"}, "Accept-Encoding": {"identity"}, "User-Agent": {"test"},
	}
	common := []string{"Accept-Encoding", "User-Agent", "X-Kept"}
	for name, c := range map[string]struct {
		set  func(*Config)
		more []string
	}{
		"as they are":   {func(cfg *Config) { cfg.Passthrough = true }, []string{"Authorization", "Cookie"}},
		"forward proxy": {func(cfg *Config) { cfg.Passthrough, cfg.Proxy = true, "env" }, []string{"Authorization", "Cookie"}},
		"more headers": {func(cfg *Config) {
			cfg.Passthrough, cfg.Headers = true, map[string]string{"X-Rebound-Mode": "observe"}
		}, []string{"Authorization", "Cookie", "X-Rebound-Mode"}},
		"own key": {func(cfg *Config) { cfg.Keys = []Key{{Name: "k", Value: "v"}} }, []string{"Authorization"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Defaults()
			cfg.URL = server.URL
			c.set(&cfg)
			u, err := New("u", cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			header := client.Clone()
			Forwardable(header)
			sent := header.Clone()
			for range 2 { // the second is made with what the first has left
				resp, err := u.Do(context.Background(), Request{Method: http.MethodGet, Path: "/models", Header: header, Key: "k"})
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				names := slices.Sorted(maps.Keys(<-got))
				want := slices.Sorted(slices.Values(append(slices.Clone(common), c.more...)))
				if !slices.Equal(names, want) {
					t.Errorf("sent %v, want %v", names, want)
				}
			}
			if !maps.EqualFunc(header, sent, slices.Equal) {
				t.Errorf("the client's headers were changed: %v", header)
			}
		})
	}
}

// A URL is that of its request, whatever came before it.
func TestURL(t *testing.T) {
	for _, base := range []string{"http://host/v1", "http://host/{model}/v1"} {
		u, err := New("u", Config{URL: base, AuthHeader: "Authorization", Passthrough: true, MaxIdleConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ path, query, model, want, deployed string }{
			{"/chat/completions", "", "m", "http://host/v1/chat/completions", "http://host/m/v1/chat/completions"},
			{"/chat/completions", "", "n", "http://host/v1/chat/completions", "http://host/n/v1/chat/completions"},
			{"/chat/completions", "a=b", "n", "http://host/v1/chat/completions?a=b", "http://host/n/v1/chat/completions?a=b"},
			{"/models", "a=b", "n", "http://host/v1/models?a=b", "http://host/n/v1/models?a=b"},
			{"/chat/completions", "", "m", "http://host/v1/chat/completions", "http://host/m/v1/chat/completions"},
		} {
			want := c.want
			if u.cfg.hasModel() {
				want = c.deployed
			}
			if got := u.url(Request{Path: c.path, Query: c.query, Model: c.model}).String(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}
