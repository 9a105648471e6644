package upstream

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProtocols: HTTP/1.1 unless the configuration says otherwise, with TLS and
// without, whatever the server could speak.
func TestProtocols(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+" "+string(body))
	})
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewUnstartedServer(handler)
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetHTTP1(true)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{secure.URL, plain.URL} {
		for http2, want := range map[bool]string{false: "HTTP/1.1 hi", true: "HTTP/2.0 hi"} {
			cfg := Defaults()
			cfg.URL, cfg.HTTP2 = base, http2
			if strings.HasPrefix(base, "https") {
				cfg.CAFile = ca
			}
			u, err := New("u", cfg)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := u.Do(t.Context(), Request{Method: "POST", Path: "/x", Body: []byte("hi")})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(resp.Body); string(got) != want {
				t.Errorf("%s, http2 %v: %q", base, http2, got)
			}
			_ = resp.Body.Close()
			u.Close()
		}
	}
}

// TestUnsent: a failure before there is a connection to the upstream is told from one after the request was sent, whatever
// the protocol and the way to the upstream.
func TestUnsent(t *testing.T) {
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangsUp.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer refuses.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler()) // with a certificate that nobody trusts
	defer secure.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	for name, c := range map[string]struct {
		url, proxy string
		http2      bool
		unsent     bool
	}{
		"refused":                          {"http://" + closed, "", false, true},
		"refused, HTTP/2":                  {"http://" + closed, "", true, true},
		"a stranger's certificate":         {secure.URL, "", false, true},
		"a stranger's certificate, HTTP/2": {secure.URL, "", true, true},
		"the proxy is down":                {"https://api.example", "http://" + closed, false, true},
		"the proxy is down, without TLS":   {"http://api.example", "http://" + closed, false, true},
		"the proxy reaches nothing":        {"https://api.example", refuses.URL, false, true},
		"sent, and hung up":                {hangsUp.URL, "", false, false},
		"sent to a proxy that hangs up":    {"http://api.example", hangsUp.URL, false, false},
		"the proxy hangs up":               {"https://api.example", hangsUp.URL, false, true},
	} {
		cfg := Defaults()
		cfg.URL, cfg.Proxy, cfg.HTTP2 = c.url, c.proxy, c.http2
		u, err := New("u", cfg)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.Do(t.Context(), Request{Method: "POST", Path: "/x", Body: []byte("hi")})
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || Unsent(err) != c.unsent {
			t.Errorf("%s: unsent %v, want %v: %v", name, !c.unsent, c.unsent, err)
		}
		if down := c.proxy == "http://"+closed; down != strings.Contains(Reason(err), "proxy") {
			t.Errorf("%s: %s: %v", name, Reason(err), err)
		}
		u.Close()
	}
}
