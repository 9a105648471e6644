package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestHealthcheckOverTLS checks that a certificate for another name than 127.0.0.1 does not matter.
func TestHealthcheckOverTLS(t *testing.T) {
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer gateway.Close()
	if _, errs, code := runWith(noEnv, "", "healthcheck", gateway.URL+"/healthz"); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
