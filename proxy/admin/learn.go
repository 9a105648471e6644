package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Learning gives access to what was learned about notes.
type Learning interface {
	Report(ctx context.Context) (recovery.Learned, error)
	Export(ctx context.Context, w io.Writer) error
	Import(ctx context.Context, r io.Reader) (added, refused int, err error)
	Reset(ctx context.Context) error
}

const (
	// learnTime limits the handling of one request.
	learnTime = 5 * time.Second
	// maxImport limits an imported corpus, in bytes.
	maxImport = 8 << 20
)

// HandleLearned adds the learning routes to a mux:
//
//	GET    /rebound/learn         what was learned and its effect
//	GET    /rebound/learn/corpus  the observations, one JSON object per line
//	POST   /rebound/learn/corpus  imports observations; {"added": n, "refused": n}
//	DELETE /rebound/learn         forgets everything
func HandleLearned(mux *http.ServeMux, l Learning) {
	handle := func(pattern string, do func(ctx context.Context, w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), learnTime)
			defer cancel()
			err := do(ctx, w, r)
			var large *http.MaxBytesError
			switch {
			case err == nil:
			case errors.As(err, &large):
				refuse(w, http.StatusRequestEntityTooLarge, "corpus_too_large", "A corpus may have at most 8 MiB.")
			default:
				refuse(w, http.StatusServiceUnavailable, "learning_unavailable", "The learned data is not available: "+err.Error())
			}
		})
	}
	handle("GET /rebound/learn", func(ctx context.Context, w http.ResponseWriter, _ *http.Request) error {
		report, err := l.Report(ctx)
		if err == nil {
			respond(w, http.StatusOK, report)
		}
		return err
	})
	handle("GET /rebound/learn/corpus", func(ctx context.Context, w http.ResponseWriter, _ *http.Request) error {
		var all bytes.Buffer
		err := l.Export(ctx, &all)
		if err == nil {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = all.WriteTo(w) // the client may have left
		}
		return err
	})
	handle("POST /rebound/learn/corpus", func(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
		added, refused, err := l.Import(ctx, http.MaxBytesReader(w, r.Body, maxImport))
		if err == nil {
			respond(w, http.StatusOK, map[string]int{"added": added, "refused": refused})
		}
		return err
	})
	handle("DELETE /rebound/learn", func(ctx context.Context, w http.ResponseWriter, _ *http.Request) error {
		err := l.Reset(ctx)
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	})
}
