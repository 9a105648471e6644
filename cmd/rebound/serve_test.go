package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
)

// TestHealthcheckOverTLS checks that a certificate for another name than 127.0.0.1 does not matter.
func TestHealthcheckOverTLS(t *testing.T) {
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer gateway.Close()
	if _, errs, code := runWith(noEnv, "", "healthcheck", gateway.URL+"/healthz"); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestHealthcheckFindsTLS checks that the health check of the container image needs no URL if the gateway serves HTTPS,
// and that other commands say what to write instead.
func TestHealthcheckFindsTLS(t *testing.T) {
	gateway := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer gateway.Close()
	gateway.Config.ErrorLog = log.New(io.Discard, "", 0)
	env := func(name string) (string, bool) {
		return strings.TrimPrefix(gateway.URL, "https://"), name == configs.EnvListen
	}
	if _, errs, code := runWith(env, "", "healthcheck"); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := runWith(env, "", "events"); code != 1 || !strings.Contains(errs, "--url https://") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	gateway.Close()
	if _, errs, code := runWith(env, "", "healthcheck"); code != 1 {
		t.Errorf("without a gateway: exit code %d: %s", code, errs)
	}
}
