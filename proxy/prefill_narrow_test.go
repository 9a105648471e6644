package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
)

// TestPrefillIsNarrow: the look at a server sends no more of a restricted client than its attempts do.
func TestPrefillIsNarrow(t *testing.T) {
	asked := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.Header.Get("X-Other") != "" || r.URL.RawQuery != "" {
			t.Errorf("%v, %s", r.Header, r.URL.RawQuery)
		}
	}))
	defer up.Close()
	c := upstream.Defaults()
	c.URL, c.Passthrough = up.URL, true
	s := completing(t, &ready{}, map[string]upstream.Config{"a": c})
	s.narrow, s.query = true, "model=other"
	s.header.Set("X-Other", "other")
	if s.Prefill(t.Context(), recovery.Candidate{Target: recovery.Target{Upstream: "a", Model: "m"}}); asked == 0 {
		t.Error("it did not look")
	}
}
