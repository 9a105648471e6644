package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/proxy/recording"
)

// Recordings gives access to recorded requests.
type Recordings interface {
	Find(ctx context.Context, request string) (json.RawMessage, error)
	Delete(ctx context.Context, request string) error
	// DeleteAll deletes the recordings of one session, or all if session is empty.
	DeleteAll(ctx context.Context, session string) (deleted int, err error)
}

// deleteTime limits a deletion.
const deleteTime = 10 * time.Second

// HandleRecordings adds the recordings' routes to a mux:
//
//	GET    /rebound/recordings/{request}   what the client sent and what went upstream; {"why": ...} if it is not available
//	DELETE /rebound/recordings/{request}   deletes it; 404 if there is none
//	DELETE /rebound/recordings?session=ID  deletes those of a session, or all without one; {"deleted": n}
func HandleRecordings(mux *http.ServeMux, recordings Recordings) {
	mux.HandleFunc("GET /rebound/recordings/{request}", func(w http.ResponseWriter, r *http.Request) {
		found, err := recordings.Find(r.Context(), r.PathValue("request"))
		if err != nil {
			respond(w, http.StatusOK, map[string]string{"why": err.Error()})
			return
		}
		respond(w, http.StatusOK, found)
	})
	mux.HandleFunc("DELETE /rebound/recordings/{request}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deleteTime)
		defer cancel()
		switch err := recordings.Delete(ctx, r.PathValue("request")); {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, recording.ErrUnknown):
			refuse(w, http.StatusNotFound, "not_recorded", "Nothing is recorded of the request "+r.PathValue("request")+".")
		default:
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "The recording was not deleted: "+err.Error())
		}
	})
	mux.HandleFunc("DELETE /rebound/recordings", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deleteTime)
		defer cancel()
		session := r.URL.Query().Get("session")
		if r.URL.Query().Has("session") && session == "" {
			refuse(w, http.StatusBadRequest, "invalid_session", "The session must not be empty. Without the parameter all recordings are deleted.")
			return
		}
		n, err := recordings.DeleteAll(ctx, session)
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "Not all recordings were deleted: "+err.Error())
			return
		}
		respond(w, http.StatusOK, map[string]int{"deleted": n})
	})
}
