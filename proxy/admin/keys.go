package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

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

// The numbers of events that are told, at most and where none is asked for.
const (
	maxHistory   = 1000
	usualHistory = 100
)

// HandleHistory adds a route to a mux. tail returns the newest n events of all
// replicas, each as JSON, oldest first.
//
//	GET /rebound/events/history  {"events": [...]}; ?last=N, 100 if it is not given
func HandleHistory(mux *http.ServeMux, tail func(ctx context.Context, n int) ([][]byte, error)) {
	mux.HandleFunc("GET /rebound/events/history", func(w http.ResponseWriter, r *http.Request) {
		last := usualHistory
		if v := r.URL.Query().Get("last"); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 || n > maxHistory {
				refuse(w, http.StatusBadRequest, "invalid_last", "last must be a number of events, from 0 to 1000.")
				return
			}
			last = n
		}
		entries, err := tail(r.Context(), last)
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "The events are not known: "+err.Error())
			return
		}
		events := []json.RawMessage{}
		for _, entry := range entries {
			if json.Valid(entry) { // the log may be somebody else's
				events = append(events, entry)
			}
		}
		respond(w, http.StatusOK, map[string]any{"events": events})
	})
}
