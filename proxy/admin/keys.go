package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/rebound-llm/rebound/proxy/quota"
)

// Keys gives access to the accounts with limits.
type Keys interface {
	Now(ctx context.Context) ([]quota.Account, error)
	// Reset resets the usage of a key; [quota.ErrUnknown] for one without limits.
	Reset(ctx context.Context, key string) error
}

// HandleKeys adds routes to a mux:
//
//	GET    /rebound/keys        {"keys": [...]}: current usage of keys with limits, and of all clients together
//	DELETE /rebound/keys/{key}  resets the usage of a key; without a name, of all clients together
func HandleKeys(mux *http.ServeMux, k Keys) {
	mux.HandleFunc("GET /rebound/keys", func(w http.ResponseWriter, r *http.Request) {
		accounts, err := k.Now(r.Context())
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "The usage of keys is not known: "+err.Error())
			return
		}
		respond(w, http.StatusOK, map[string]any{"keys": accounts})
	})
	mux.HandleFunc("DELETE /rebound/keys/{key...}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), resetTime)
		defer cancel()
		switch err := k.Reset(ctx, r.PathValue("key")); {
		case errors.Is(err, quota.ErrUnknown):
			refuse(w, http.StatusNotFound, "key_without_limits", "No limits of that name. \"rebound keys\" lists all.")
		case err != nil:
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "The limits were not reset: "+err.Error())
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}
