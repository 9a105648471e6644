package admin

import (
	"context"
	"net/http"

	"github.com/rebound-llm/rebound/proxy/quota"
)

// Keys are the accounts that are limited.
type Keys interface {
	Now(ctx context.Context) ([]quota.Account, error)
}

// HandleKeys adds a route to a mux:
//
//	GET /rebound/keys  {"keys": [...]}: what keys with limits, and all clients together, use now
func HandleKeys(mux *http.ServeMux, k Keys) {
	mux.HandleFunc("GET /rebound/keys", func(w http.ResponseWriter, r *http.Request) {
		accounts, err := k.Now(r.Context())
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "What keys use is not known: "+err.Error())
			return
		}
		respond(w, http.StatusOK, map[string]any{"keys": accounts})
	})
}
