package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// buffer is the memory of a request body.
type buffer struct{ bytes []byte }

// bodies are buffers of requests that were answered at the first attempt. All
// others are left to the collector: an attempt that lost may still be sending.
var bodies = sync.Pool{New: func() any { return new(buffer) }}

// keepBody is the capacity above which a buffer is left to the collector.
const keepBody = 1 << 20

// recycle gives a buffer up that nobody reads any more.
func (b *buffer) recycle() {
	if cap(b.bytes) <= keepBody {
		b.bytes = b.bytes[:0]
		bodies.Put(b)
	}
}

// readBody reads a request body within its limits, from now on.
func readBody(c echo.Context, lim LimitsConfig, now time.Time) (*buffer, error) {
	req := c.Request()
	if enc := first(req.Header, "Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, failf(http.StatusUnsupportedMediaType, "unsupported_encoding", "Request bodies must not be compressed (Content-Encoding: %s).", printable(enc))
	}
	if req.ContentLength > lim.Body {
		return nil, tooLarge(lim)
	}
	src := newPacedReader(c, lim.BodyTimeout)
	src.allow(now)
	b := bodies.Get().(*buffer)
	err := b.fill(&src, req.ContentLength, lim.Body)
	src.done(err == nil && int64(len(b.bytes)) <= lim.Body)
	switch {
	case int64(len(b.bytes)) > lim.Body:
		return nil, tooLarge(lim)
	case err != nil:
		e := failf(http.StatusBadRequest, "incomplete_body", "The request body could not be read to its end. Nothing was sent upstream.")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			e = failf(http.StatusRequestTimeout, "slow_body", "The request body made no progress for %s. Nothing was sent upstream.", lim.BodyTimeout)
		}
		e.Header = http.Header{"Connection": {"close"}}
		return nil, e
	}
	return b, nil
}

// fill reads a body to its end, or a byte beyond limit. announced is its
// Content-Length, -1 when unknown.
func (b *buffer) fill(from *pacedReader, announced, limit int64) error {
	if announced < 0 {
		announced = 4 << 10
	}
	if int64(cap(b.bytes)) <= announced {
		b.bytes = make([]byte, 0, min(announced, trustedLength)+1) // one more, to see the end
	}
	for int64(len(b.bytes)) <= limit {
		n := len(b.bytes)
		if n == cap(b.bytes) {
			b.bytes = append(b.bytes, 0)
		}
		got, err := from.Read(b.bytes[n:cap(b.bytes)])
		b.bytes = b.bytes[:n+got]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trustedLength bounds what is allocated on the word of a Content-Length.
const trustedLength = 1 << 20

// pacedReader fails a body that makes no progress.
type pacedReader struct {
	r        io.Reader
	conn     readDeadliner
	patience time.Duration
	allowed  bool      // just now, so that the next read need not look at the clock
	renew    time.Time // when the deadline is to be set anew
}

// readDeadliner is the response of a connection whose reads can be bounded.
type readDeadliner interface{ SetReadDeadline(time.Time) error }

func newPacedReader(c echo.Context, patience time.Duration) pacedReader {
	return pacedReader{r: c.Request().Body, conn: readDeadlines(c.Response().Writer), patience: patience}
}

// readDeadlines finds what [http.ResponseController] would, once for all
// deadlines of a body.
func readDeadlines(w http.ResponseWriter) readDeadliner {
	for {
		switch t := w.(type) {
		case readDeadliner:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return boundless{}
		}
	}
}

// boundless is a response without deadlines.
type boundless struct{}

func (boundless) SetReadDeadline(time.Time) error { return http.ErrNotSupported }

// allow bounds the read that comes next.
func (p *pacedReader) allow(now time.Time) {
	_ = p.conn.SetReadDeadline(now.Add(p.patience)) // not every connection has one
	p.allowed, p.renew = true, now.Add(p.patience/4)
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if !p.allowed {
		if now := time.Now(); now.After(p.renew) {
			p.allow(now)
		}
	}
	p.allowed = false
	return p.r.Read(b)
}

// done lifts the deadline: from here on the client only listens. Where the
// body was not read to its end, nobody waits for the rest of it either.
func (p *pacedReader) done(whole bool) {
	if whole {
		_ = p.conn.SetReadDeadline(time.Time{})
	} else {
		_ = p.conn.SetReadDeadline(time.Now())
	}
}

func tooLarge(lim LimitsConfig) *Error {
	e := failf(http.StatusRequestEntityTooLarge, "body_too_large", "The request body is larger than %d bytes (limits.body).", lim.Body)
	e.Header = http.Header{"Connection": {"close"}}
	return e
}
