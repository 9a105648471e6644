package h1_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rebound-llm/rebound/proxy/h1"
)

func TestTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			var resumed []bool
			var certs int
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				resumed, certs = append(resumed, r.TLS.DidResume), len(r.TLS.PeerCertificates)
				_, _ = w.Write([]byte(r.TLS.ServerName + " " + r.TLS.NegotiatedProtocol + " " + r.Proto))
			}))
			srv.EnableHTTP2 = true // we must not fall for it
			srv.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MaxVersion: version, ClientAuth: tls.RequestClientCert}
			srv.StartTLS()
			defer srv.Close()
			cfg := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			cfg.ServerName, cfg.NextProtos = "example.com", []string{"h2"}
			cfg.Certificates = srv.TLS.Certificates
			tr := newTransport(t, h1.Config{TLS: cfg})
			for i := range 4 {
				if i == 2 {
					tr.CloseIdleConnections()
				}
				if _, body := get(t, tr, srv.URL); body != "example.com http/1.1 HTTP/1.1" {
					t.Errorf("%q", body)
				}
			}
			if len(resumed) != 4 || resumed[0] || !resumed[2] {
				t.Errorf("sessions resumed: %v", resumed)
			}
			if certs != 1 || tr.IdleConns() != 1 {
				t.Errorf("%d client certificates, %d idle connections", certs, tr.IdleConns())
			}
			if cfg.NextProtos[0] != "h2" || cfg.ClientSessionCache != nil {
				t.Error("the caller's configuration was changed")
			}
		})
	}
}

func TestTLSRefusals(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, cfg := range map[string]*tls.Config{
		"unknown authority": nil,
		"another name":      {RootCAs: roots, ServerName: "rebound.test"},
	} {
		_, err := newTransport(t, h1.Config{TLS: cfg}).RoundTrip(request(t, t.Context(), "GET", srv.URL, nil))
		var dial *h1.DialError
		var unknown x509.UnknownAuthorityError
		var wrong x509.HostnameError
		if !errors.As(err, &dial) || errors.As(err, &unknown) == errors.As(err, &wrong) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
}

// TestTLSServerCloses: the farewell of an idle connection is noticed before it is used.
func TestTLSServerCloses(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer srv.Close()
	tr := newTransport(t, h1.Config{TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig})
	for range 10 {
		if _, body := get(t, tr, srv.URL); body != "ok" {
			t.Fatalf("%q", body)
		}
		srv.CloseClientConnections()
	}
}
