package admin

import (
	"context"
	"encoding/json"
	"net/http"
)

// Recordings are requests before and after.
type Recordings interface {
	Find(ctx context.Context, request string) (json.RawMessage, error)
}

// HandleRecordings adds a route to a mux:
//
//	GET /rebound/recordings/{request}  what the client sent and what went upstream; {"why": ...} if that is not to be had
func HandleRecordings(mux *http.ServeMux, recordings Recordings) {
	mux.HandleFunc("GET /rebound/recordings/{request}", func(w http.ResponseWriter, r *http.Request) {
		found, err := recordings.Find(r.Context(), r.PathValue("request"))
		if err != nil {
			respond(w, http.StatusOK, map[string]string{"why": err.Error()})
			return
		}
		respond(w, http.StatusOK, found)
	})
}
