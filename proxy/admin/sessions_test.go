package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/recovery"
)

type sessions struct {
	open  []recovery.OpenSession
	reset string
	err   error
}

func (s *sessions) Open() []recovery.OpenSession { return s.open }
func (s *sessions) Reset(_ context.Context, id string) error {
	s.reset = id
	return s.err
}

func TestSessions(t *testing.T) {
	s := &sessions{}
	mux := http.NewServeMux()
	admin.Handle(mux, s)
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	if w := ask("GET", "/rebound/sessions"); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"sessions":[]}` {
		t.Errorf("none: %d %s", w.Code, w.Body)
	}
	s.open = []recovery.OpenSession{{Session: "s_a", Tool: "bash", Category: recovery.DiskFull, Failures: 5}}
	if w := ask("GET", "/rebound/sessions"); !strings.Contains(w.Body.String(), `"session":"s_a","tool":"bash","category":"disk_full"`) {
		t.Errorf("one: %s", w.Body)
	}
	if w := ask("DELETE", "/rebound/sessions/s_a"); w.Code != http.StatusNoContent || s.reset != "s_a" {
		t.Errorf("reset: %d, %q", w.Code, s.reset)
	}
	s.reset = ""
	if w := ask("DELETE", "/rebound/sessions/s_b"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "session_not_stopped") || s.reset != "" {
		t.Errorf("reset of what is not stopped: %d %s, %q", w.Code, w.Body, s.reset)
	}
	s.err = errors.New("store unavailable")
	if w := ask("DELETE", "/rebound/sessions/s_a"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "rebound_error") {
		t.Errorf("reset without a store: %d %s", w.Code, w.Body)
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if w := ask(method, "/rebound/sessions"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}
