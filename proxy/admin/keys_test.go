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
