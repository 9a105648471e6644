package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rebound-llm/rebound/recovery"
)

type anyFailure struct{}

func (anyFailure) Classify(ev recovery.Evidence) recovery.Diagnosis {
	return recovery.Diagnosis{Signal: recovery.Signal{Status: ev.Status}}
}

// TestErrorBodyThatStalls: the error of a forwarded request whose body does not end counts as far as it came.
func TestErrorBodyThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		body, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
		resp := &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(`{"error":{"message":"no"`), body), body}}
		core := &Core{Classifier: anyFailure{}}
		core.hide()
		r := &repeated{core: core, x: &recovery.Exchange{}}
		f := r.refused(recovery.Attempt{Cancel: cancel}, resp)
		if f.Response.Status != http.StatusBadRequest || string(f.Response.Body) != `{"error":{"message":"no"` {
			t.Errorf("%d %q", f.Response.Status, f.Response.Body)
		}
	})
}
