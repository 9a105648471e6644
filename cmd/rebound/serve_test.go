package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHealthcheckOverTLS: the certificate of a gateway is for the name that its
// clients use, not for 127.0.0.1.
func TestHealthcheckOverTLS(t *testing.T) {
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer gateway.Close()
	if _, errs, code := runWith(noEnv, "", "healthcheck", gateway.URL+"/healthz"); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
