package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// readBody reads a request body within its limits.
func (s *Server) readBody(c echo.Context, lim LimitsConfig) (*buffer, error) {
	req := c.Request()
	if enc := first(req.Header, "Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, failf(http.StatusUnsupportedMediaType, "unsupported_encoding", "Request bodies must not be compressed (Content-Encoding: %s).", printable(enc))
	}
	if req.ContentLength > lim.Body {
		return nil, tooLarge(lim)
	}
	src := s.upload(c, lim.BodyTimeout)
	b := bodies.Get().(*buffer)
	err := b.fill(src, req.ContentLength, lim.Body)
	if err == nil && int64(len(b.bytes)) > lim.Body {
		err = tooLarge(lim)
	}
	src.end()
	if err != nil {
		return nil, err
	}
	return b, nil
}

// firstRead is how much memory a body has before a byte of it has come, and
// growth how many times what has come it may have: a Content-Length is only a
// promise.
const (
	firstRead = 64 << 10
	growth    = 4
)

// fill reads a body to its end, or a byte beyond limit. announced is its
// Content-Length, -1 when unknown.
func (b *buffer) fill(from io.Reader, announced, limit int64) error {
	if announced < 0 {
		announced = limit
	}
	for int64(len(b.bytes)) <= limit {
		n := len(b.bytes)
		if n == cap(b.bytes) {
			// One more than announced, to see the end.
			more := min(max(firstRead, (growth-1)*n), max(int(announced)-n, 0)+1)
			b.bytes = slices.Grow(b.bytes, more)
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

// upload is a request body that fails if it makes no progress, or if the gateway
// stops before all of it is here. One goroutine at a time may read it.
type upload struct {
	all      *uploads
	body     io.Reader
	conn     *http.ResponseController
	patience time.Duration
	mu       sync.Mutex            // held while it is read
	renew    time.Time             // when the deadline is to be set anew
	whole    atomic.Bool           // it was read to its end
	failed   atomic.Pointer[Error] // why it was not
}

// upload begins to read a request's body. Its end must be called.
func (s *Server) upload(c echo.Context, patience time.Duration) *upload {
	u := &upload{all: &s.uploads, body: c.Request().Body, conn: http.NewResponseController(c.Response().Writer), patience: patience}
	s.uploads.add(u)
	return u
}

// Read implements io.Reader. Its errors but io.EOF are for the client.
func (u *upload) Read(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now(); now.After(u.renew) {
		u.all.allow(u, now.Add(u.patience))
		u.renew = now.Add(u.patience / 4)
	}
	n, err := u.body.Read(b)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF:
		u.whole.Store(true)
		u.all.remove(u, time.Time{}) // from here on the client only listens
		return n, io.EOF
	}
	var e *Error
	switch {
	case u.all.stopped():
		e = stopping()
	case errors.Is(err, os.ErrDeadlineExceeded):
		e = failf(http.StatusRequestTimeout, "slow_body", "The request body made no progress for %s.", u.patience)
	default:
		e = failf(http.StatusBadRequest, "incomplete_body", "The request body could not be read to its end.")
	}
	if e.Header == nil {
		e.Header = http.Header{"Connection": {"close"}}
	}
	u.failed.Store(e)
	return n, e
}

// failure is why the body could not be read, nil if that is not why the request
// failed. net/http ends the request's context for a failed read, too, before the
// reader learns of it.
func (u *upload) failure(ctx context.Context) *Error {
	if ctx.Err() != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
	}
	return u.failed.Load()
}

// end is called when nobody wants more of the body: nobody waits for the rest either.
func (u *upload) end() {
	if !u.whole.Load() {
		u.all.remove(u, time.Now())
	}
}

// uploads are the bodies that are being read. Safe for concurrent use; the zero
// value is ready.
type uploads struct {
	mu   sync.Mutex
	open map[*upload]struct{}
	over bool
}

func (a *uploads) add(u *upload) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[*upload]struct{}{}
	}
	a.open[u] = struct{}{}
}

func (a *uploads) remove(u *upload, by time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, u)
	_ = u.conn.SetReadDeadline(by)
}

// allow gives a body time, unless the gateway stops.
func (a *uploads) allow(u *upload, by time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		by = time.Now()
	}
	_ = u.conn.SetReadDeadline(by) // not every connection has one
}

// stop ends all reads, now and later.
func (a *uploads) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for u := range a.open {
		_ = u.conn.SetReadDeadline(time.Now())
	}
}

func (a *uploads) stopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

func tooLarge(lim LimitsConfig) *Error {
	e := failf(http.StatusRequestEntityTooLarge, "body_too_large", "The request body is larger than %d bytes (limits.body).", lim.Body)
	e.Header = http.Header{"Connection": {"close"}}
	return e
}
