package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Sessions are the conversations whose breaker is open.
type Sessions interface {
	Open() []recovery.OpenSession
	// Reset closes a session's breaker; one that is not open is no error.
	Reset(ctx context.Context, session string) error
}

// resetTime bounds a reset.
const resetTime = 2 * time.Second

// Handle adds the sessions' routes to a mux:
//
//	GET    /rebound/sessions           {"sessions": [...]}, the latest first
//	DELETE /rebound/sessions/{session} closes its breaker
func Handle(mux *http.ServeMux, s Sessions) {
	mux.HandleFunc("GET /rebound/sessions", func(w http.ResponseWriter, _ *http.Request) {
		open := s.Open()
		if open == nil {
			open = []recovery.OpenSession{}
		}
		respond(w, http.StatusOK, map[string]any{"sessions": open})
	})
	mux.HandleFunc("DELETE /rebound/sessions/{session}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), resetTime)
		defer cancel()
		if err := s.Reset(ctx, r.PathValue("session")); err != nil {
			respond(w, http.StatusServiceUnavailable, map[string]any{"error": map[string]any{
				"message": "The session was not reset: " + err.Error(), "type": "rebound_error", "param": nil, "code": "store_unavailable"}})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}
