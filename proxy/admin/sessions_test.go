package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
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

type targets struct{ marks []recovery.Mark }

func (t *targets) Marks() []recovery.Mark { return t.marks }
func (t *targets) Clear(name, item string) {
	t.marks = slices.DeleteFunc(t.marks, func(m recovery.Mark) bool { return m.Target == name && (item == "" || m.Item == item) })
}

func TestTargets(t *testing.T) {
	mux := http.NewServeMux()
	admin.HandleTargets(mux, &targets{marks: []recovery.Mark{
		{Target: "up/b", Kind: recovery.MarkLearned, Item: "field seed", Detail: "refuses seed"}, {Target: "up/b", Kind: recovery.MarkWindow, Item: "window"},
		{Target: "up/a/1?x=&y", Kind: recovery.MarkBreaker, Item: "breaker"}, {Target: "up/b", Kind: recovery.MarkBreaker, Item: "breaker"}}})
	ask := func(method, path string, code int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	ask("GET", "/rebound/targets", 200, `[{"target":"up/a/1?x=\u0026y","kind":"breaker","item":"breaker"},{"target":"up/b","kind":"breaker","item":"breaker"},{"target":"up/b","kind":"learned"`)
	ask("DELETE", "/rebound/targets?target=up/c", 404, "target_not_marked")
	ask("DELETE", "/rebound/targets", 404, "target_not_marked")
	ask("DELETE", "/rebound/targets?target=up%2Fa%2F1%3Fx%3D%26y", 204, "")
	ask("DELETE", "/rebound/targets?target=up/b&item=field+seed", 204, "")
	ask("DELETE", "/rebound/targets?target=up/b&item=field+seed", 404, "target_not_marked")
	ask("GET", "/rebound/targets", 200, `[{"target":"up/b","kind":"breaker","item":"breaker"},{"target":"up/b","kind":"window","item":"window"}]`)
	ask("DELETE", "/rebound/targets?target=up/b", 204, "")
	ask("GET", "/rebound/targets", 200, `{"targets":[]}`)
}
