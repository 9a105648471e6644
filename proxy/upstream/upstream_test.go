package upstream

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
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
		"Authorization": {"Bearer client"}, "Cookie": {"c"}, "X-Unknown": {"1"}, "X-Asked-For": {"1"}, "Accept-Encoding": {"identity"}, "User-Agent": {"test"},
	}
	common := []string{"Accept-Encoding", "User-Agent", "Via"}
	for name, c := range map[string]struct {
		set  func(*Config)
		more []string
	}{
		"as they are":   {func(cfg *Config) { cfg.Passthrough = true }, []string{"Authorization", "Cookie", "X-Asked-For", "X-Unknown"}},
		"forward proxy": {func(cfg *Config) { cfg.Passthrough, cfg.Proxy = true, "env" }, []string{"Authorization", "Cookie", "X-Asked-For", "X-Unknown"}},
		"more headers": {func(cfg *Config) {
			cfg.Passthrough, cfg.Headers = true, map[string]string{"X-Rebound-Mode": "observe"}
		}, []string{"Authorization", "Cookie", "X-Asked-For", "X-Rebound-Mode", "X-Unknown"}},
		"own key":   {func(cfg *Config) { cfg.Keys = []Key{{Name: "k", Value: "v"}} }, []string{"Authorization"}},
		"no key":    {func(cfg *Config) {}, nil},
		"asked for": {func(cfg *Config) { cfg.ForwardHeaders = []string{"x-asked-for"} }, []string{"X-Asked-For"}},
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
			Forwardable(header, "1.1 test")
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
			if got, err := u.url(Request{Path: c.path, Query: c.query, Model: c.model}); err != nil || got.String() != want {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		}
	}
}

// Clients' credentials go to no host but their own, whatever they are called.
func TestCredentialsStayAtHome(t *testing.T) {
	client := http.Header{"Content-Type": {"application/json"}, "X-Grok-Conv-Id": {"conv_1"}, "X-Stainless-Lang": {"js"}}
	for _, name := range []string{"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "X-Auth-Token", "Helicone-Auth", "X-Portkey-Api-Key",
		"Cf-Aig-Authorization", "Ocp-Apim-Subscription-Key", "Openai-Organization", "X-Amz-Security-Token", "Referer", "X-Whatever-Comes-Next"} {
		client.Set(name, "secret")
	}
	const query = "token=secret&apikey=secret&API_KEY=secret&code=secret&sig=secret&limit=3&api-version=1&after_id=a&page=b"
	for name, c := range map[string]struct {
		set    func(*Config)
		narrow bool
		all    bool
	}{
		"own keys":              {func(cfg *Config) { cfg.Keys = []Key{{Name: "k", Value: "v"}} }, false, false},
		"none":                  {func(*Config) {}, false, false},
		"the client's own":      {func(cfg *Config) { cfg.Passthrough = true }, false, true},
		"its own, but narrowed": {func(cfg *Config) { cfg.Passthrough = true }, true, false},
	} {
		cfg := Defaults()
		cfg.URL, cfg.AuthHeader = "http://host/v1", "X-Own"
		c.set(&cfg)
		u, err := New("u", cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Path: "/models", Query: query, Header: client, Narrow: c.narrow}
		at, err := u.url(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := at.RawQuery; (got == query) != c.all || !c.all && got != "after_id=a&api-version=1&limit=3&page=b" {
			t.Errorf("%s: query %s", name, got)
		}
		names := slices.Sorted(maps.Keys(u.header(r)))
		if c.all != (len(names) == len(client)) || !c.all && !slices.Equal(names, []string{"Content-Type", "X-Grok-Conv-Id", "X-Stainless-Lang"}) {
			t.Errorf("%s: headers %v", name, names)
		}
	}
}

// A path is sent as it came, and leads nowhere else.
func TestPaths(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.RequestURI }))
	defer server.Close()
	ask := func(base, path, model string) string {
		u, err := New("u", Config{URL: server.URL + base, AuthHeader: "Authorization", Passthrough: true, MaxIdleConns: 1, ConnectTimeout: 1e9})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		resp, err := u.Do(context.Background(), Request{Method: http.MethodGet, Path: path, Model: model, Header: http.Header{}})
		if err != nil {
			return err.Error()
		}
		_ = resp.Body.Close()
		return <-got
	}
	for _, path := range []string{"/models/meta-llama%2FLlama-3", "/models/a%20b", "/models/%E4%B8%AD", "/models/a+b:free", "/a//b", "/models/100%25", "/models/.../a..b", "/"} {
		if uri := ask("/v1", path, ""); uri != "/v1"+path {
			t.Errorf("%s was sent as %s", path, uri)
		}
		if uri := ask("/base%2Fv1", path, ""); uri != "/base%2Fv1"+path {
			t.Errorf("%s was sent as %s", path, uri)
		}
	}
	for _, path := range []string{"/..", "/../admin", "/a/../b", "/%2e%2e/admin", "/%2E./admin", "/a/%252e%252e/b", "/%25252e%25252e/", "/..%2fadmin", `/..%5cadmin`,
		"/..;x=1/admin", "/a/.", "/./a", "/a%00b", "/a%0d%0ab", "/%c0%ae%c0%ae/", "nothing", ""} {
		if uri := ask("/v1", path, ""); uri != ErrPath.Error() {
			t.Errorf("%s was sent as %s", path, uri)
		}
	}
	for model, want := range map[string]string{
		"gpt-4.1": "/d/gpt-4.1/chat", "meta-llama/Llama-3": "/d/meta-llama/Llama-3/chat", "a b?c#d%2F": "/d/a%20b%3Fc%23d%252F/chat", "50%": "/d/50%25/chat",
		"..": "", "../../admin": "", "a/../../b": "", "%2e%2e/admin": "", "a\\..\\b": "", ".": "",
	} {
		if uri := ask("/d/{model}", "/chat", model); want == "" && uri != ErrPath.Error() || want != "" && uri != want {
			t.Errorf("the model %s was sent as %s", model, uri)
		}
	}
}

func FuzzSafePath(f *testing.F) {
	f.Add("/a/%2e%2e/b")
	f.Fuzz(func(t *testing.T, path string) {
		if !SafePath(path) {
			return
		}
		plain, err := url.PathUnescape(path)
		if err != nil {
			t.Fatalf("%q is no escaped path", path)
		}
		if u := (&url.URL{Scheme: "http", Host: "h", Path: "/base"}).JoinPath(path); !strings.HasPrefix(u.Path, "/base") {
			t.Fatalf("%q leads to %s", path, u)
		}
		for segment := range strings.SplitSeq(plain, "/") {
			if segment == ".." || segment == "." {
				t.Fatalf("%q is %q", path, plain)
			}
		}
	})
}

func TestValidateURL(t *testing.T) {
	for _, bad := range []string{"https://host/v1?key=sk-secret", "https://host/v1?", "https://host/v1#sk-secret", "htp://host/v1?key=sk-secret", "https://host/a/../b"} {
		cfg := Defaults()
		cfg.URL = bad
		if err := cfg.Validate(); err == nil || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestLocalHosts: which hosts are the operator's own, where slow first tokens are normal and no forward proxy is asked.
func TestLocalHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost:11434": true, "127.0.0.1:8000": true, "[::1]:8000": true, "0.0.0.0:8000": true, "[::]:8000": true, "192.168.1.9": true, "10.1.2.3": true,
		"[fd00::1]": true, "169.254.1.1": true, "100.64.0.1": true, "100.127.255.254": true, "100.128.0.1": false, "100.63.0.1": false, "gpu": true, "gpu.local": true,
		"GPU.Lan:8080": true, "gpu.home.arpa": true, "host.docker.internal": true, "llm.localhost": true, "api.openai.com": false, "8.8.8.8": false, "[2606:4700::1111]": false,
		"local.example": false, "notlan.example": false,
	} {
		cfg := Defaults()
		cfg.URL, cfg.Profile = "http://"+host+"/v1", "auto"
		if got := cfg.Local(); got != want {
			t.Errorf("%s: local %v, want %v", host, got, want)
		}
	}
}
