package upstream

import (
	"encoding/pem"
	"io"
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
