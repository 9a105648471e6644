package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/proxy/quota"
)

type accounts struct{ err error }

func (a accounts) Now(context.Context) ([]quota.Account, error) {
	return []quota.Account{{Key: "alice", Uses: []quota.Use{{Limit: "concurrent", Used: 2, Of: 3}}}}, a.err
}

func (a accounts) Reset(_ context.Context, key string) error {
	if key != "alice" && key != "" {
		return quota.ErrUnknown
	}
	return a.err
}

// What a key has used is given back by its name, which may have a slash.
func TestResetKeys(t *testing.T) {
	for _, c := range []struct {
		path   string
		err    error
		status int
	}{
		{"/rebound/keys/alice", nil, 204}, {"/rebound/keys/", nil, 204}, {"/rebound/keys/a%2Fb", nil, 404}, {"/rebound/keys/alice", errors.New("store closed"), 503},
	} {
		mux := http.NewServeMux()
		admin.HandleKeys(mux, accounts{c.err})
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("DELETE", c.path, nil))
		if w.Code != c.status {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
	}
}

func TestKeys(t *testing.T) {
	away := errors.New("store closed")
	for _, c := range []struct {
		path   string
		err    error
		status int
		body   string
	}{
		{"/rebound/keys", nil, 200, `{"keys":[{"key":"alice","limits":[{"limit":"concurrent","used":2,"of":3}]}]}`},
		{"/rebound/keys", away, 503, "store_unavailable"},
	} {
		mux := http.NewServeMux()
		admin.HandleKeys(mux, accounts{c.err})
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
	}
}
