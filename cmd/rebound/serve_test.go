package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHealthcheckOverTLS: the certificate of a gateway is for the name that its
// clients use, not for 127.0.0.1.
func TestHealthcheckOverTLS(t *testing.T) {
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer gateway.Close()
	var out bytes.Buffer
	if code := runHealthcheck([]string{gateway.URL + "/healthz"}, func(string) (string, bool) { return "", false }, &out, &out); code != 0 {
		t.Errorf("exit code %d: %s", code, &out)
	}
}
