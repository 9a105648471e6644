package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Sessions gives access to the sessions with an open breaker.
type Sessions interface {
	Open() []recovery.OpenSession
	// Reset closes a session's breaker.
	Reset(ctx context.Context, session string) error
}

// resetTime limits a reset.
const resetTime = 2 * time.Second

// Handle adds the sessions' routes to a mux:
//
//	GET    /rebound/sessions           {"sessions": [...]}, the latest first
//	DELETE /rebound/sessions/{session} closes its breaker; 404 if it is not open
func Handle(mux *http.ServeMux, s Sessions) {
	handleList(mux, "sessions", s.Open)
	mux.HandleFunc("DELETE /rebound/sessions/{session}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), resetTime)
		defer cancel()
		id := r.PathValue("session")
		if !slices.ContainsFunc(s.Open(), func(o recovery.OpenSession) bool { return o.Session == id }) {
			refuse(w, http.StatusNotFound, "session_not_stopped", "No session "+id+" is stopped here. \"rebound sessions\" lists those that are.")
			return
		}
		if err := s.Reset(ctx, id); err != nil {
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "The session was not reset: "+err.Error())
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// handleList adds GET /rebound/NAME, {"NAME": [...]}, to a mux.
func handleList[T any](mux *http.ServeMux, name string, list func() []T) {
	mux.HandleFunc("GET /rebound/"+name, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{name: append([]T{}, list()...)})
	})
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	respond(w, status, map[string]any{"error": map[string]any{"message": message, "type": "rebound_error", "param": nil, "code": code}})
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}
