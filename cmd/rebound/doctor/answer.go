package doctor

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/recovery"
)

const (
	// maxAnswer is the limit of one answer in bytes. Lists of models are the largest.
	maxAnswer = 8 << 20
	// maxPieces is the number of text deltas after which read leaves an answer that may be endless.
	maxPieces = 40
)

// answer is the outcome of a request.
type answer struct {
	status int
	header http.Header
	body   []byte        // nil for a stream
	skew   time.Duration // how far the server's clock is ahead; only if dated
	dated  bool

	stream.Content
	opening     string        // the first piece of a streamed text
	pieces      int           // number of text deltas in a stream
	first, took time.Duration // until the first text, and until the end
	ended       bool          // the stream is complete

	failure *recovery.Diagnosis // nil for a complete answer
	skipped bool                // not sent, because the target got its maximum of requests
}

// class is the class of the failure, "" without one.
func (a *answer) class() recovery.Class {
	if a.failure == nil {
		return ""
	}
	return a.failure.Spec.Class
}

// read reads a stream to its end, or to limit text deltas if limit is not 0. It returns an error event in failed.
func (a *answer) read(body io.Reader, f stream.Format, started time.Time, limit int) (failed []byte, err error) {
	defer func() { a.took = time.Since(started) }()
	events := stream.NewReader(io.LimitReader(body, maxAnswer), maxAnswer)
	for !a.ended {
		ev, err := events.Next()
		if err != nil {
			if a.ended = a.Finish != recovery.FinishNone; a.ended || errors.Is(err, io.EOF) {
				err = nil
			}
			return nil, err
		}
		before := len(a.Text)
		switch a.Add(f, &ev) {
		case stream.KindError:
			return bytes.Clone(ev.Data), nil
		case stream.KindCut:
			return nil, stream.ErrCut
		case stream.KindDone:
			a.ended = true
		}
		if len(a.Text) > before {
			if a.pieces++; a.pieces == 1 {
				a.first, a.opening = time.Since(started), a.Text
			}
			a.ended = a.ended || limit > 0 && a.pieces >= limit
		}
	}
	return nil, nil
}

// usable reports whether a call has a name and arguments with a city.
func usable(c recovery.DraftCall) bool {
	return c.Name == toolName && gjson.Valid(c.Arguments) && strings.TrimSpace(gjson.Get(c.Arguments, "city").Str) != ""
}
