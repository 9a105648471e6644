package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/coding"
)

// buffer is the memory of a request body. Its end must be called exactly once.
type buffer struct {
	bytes   []byte // decoded
	encoded []byte // as received, if it was compressed
	coding  string // the coding of encoded
	share   share
}

// bodies holds buffers of requests that were answered at the first attempt. All others are left to the
// garbage collector, because an attempt that lost may still be sending.
var bodies = sync.Pool{New: func() any { return new(buffer) }}

// keepBody is the capacity, in bytes, above which a buffer is not reused.
const keepBody = 1 << 20

// end gives the buffer's memory back to its limit.
func (b *buffer) end() { b.share.free() }

// reuse makes the buffer available to another request. It must be called after end, when nothing reads the buffer any more.
func (b *buffer) reuse() {
	if cap(b.bytes) <= keepBody {
		*b = buffer{bytes: b.bytes[:0]}
		bodies.Put(b)
	}
}

// readBody reads a request body within its limits, and decodes it. The buffer's
// end must be called when the request is answered.
func (s *Server) readBody(c echo.Context, who client, lim LimitsConfig) (*buffer, error) {
	req := c.Request()
	name, err := coding.Name(req.Header["Content-Encoding"])
	if err != nil {
		e := failf(http.StatusUnsupportedMediaType, "unsupported_encoding", "Request bodies may be compressed with gzip, deflate, zstd or br, not with %s.",
			printable(first(req.Header, "Content-Encoding")))
		e.Header = http.Header{"Accept-Encoding": {"gzip, deflate, zstd, br"}} // RFC 9110, section 12.5.3
		return nil, e
	}
	b := bodies.Get().(*buffer)
	b.share = share{of: &s.memory, key: who.name, limit: lim.Memory}
	src := s.upload(c, lim.BodyTimeout)
	if req.ContentLength > lim.Body {
		err = tooLarge(lim)
	} else {
		b.bytes, err = b.fill(b.bytes, src, req.ContentLength, lim)
	}
	if err != nil {
		b.end()
		src.end()
		return nil, err
	}
	src.end()
	if name != "" {
		if err = b.decode(name, lim); err != nil {
			b.end()
			return nil, err
		}
	}
	return b, nil
}

// decode decompresses the body that was read; encoded keeps the original.
func (b *buffer) decode(name string, lim LimitsConfig) error {
	if err := b.share.take(coding.Memory(name)); err != nil {
		return err
	}
	defer b.share.give(coding.Memory(name))
	b.encoded, b.coding, b.bytes = b.bytes, name, nil
	r, err := coding.NewReader(name, bytes.NewReader(b.encoded))
	if err == nil {
		b.bytes, err = b.fill(nil, r, -1, lim)
	}
	var own *Error
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.Is(err, coding.ErrTooDense):
		return failf(http.StatusRequestEntityTooLarge, "body_too_dense", "The compressed request body expands to more than %d times its size. Send it "+
			"uncompressed.", coding.MaxRatio)
	}
	return failf(http.StatusBadRequest, "invalid_encoding", "The request body cannot be decompressed as its Content-Encoding says (%s). Nothing was sent "+
		"upstream.", name)
}

// firstRead is the memory that a body gets before its first byte arrives. After that it gets at most
// growth times what has arrived: a Content-Length is only a promise.
const (
	firstRead = 64 << 10
	growth    = 4
)

// fill reads a body into dst to its end. announced is its Content-Length, -1 when unknown. The
// capacity of a reused buffer is charged only as far as it is filled, and in full at the end, so that
// a mere Content-Length takes little memory from other requests.
func (b *buffer) fill(dst []byte, from io.Reader, announced int64, lim LimitsConfig) ([]byte, error) {
	if announced < 0 {
		announced = lim.Body
	}
	granted := 0 // bytes of dst that are charged
	for {
		n := len(dst)
		if n == granted {
			// One byte more than announced, to detect the end.
			more := min(max(firstRead, (growth-1)*n), max(int(announced)-n, 0)+1)
			if err := b.share.take(int64(more)); err != nil {
				return dst, err
			}
			if granted += more; cap(dst) < granted {
				dst = slices.Grow(dst, more)
				b.share.give(int64(granted - cap(dst))) // slices.Grow rounds sizes up
				granted = cap(dst)
			}
		}
		got, err := from.Read(dst[n:granted])
		dst = dst[:n+got]
		switch {
		case int64(len(dst)) > lim.Body:
			return dst, tooLarge(lim)
		case err == io.EOF:
			b.share.give(int64(granted - cap(dst)))
			return dst, nil
		case err != nil:
			return dst, err
		}
	}
}

// upload is a request body that fails if it makes no progress, or if the gateway stops before it is
// complete. One goroutine at a time may read it.
type upload struct {
	all      *uploads
	body     io.Reader
	conn     *http.ResponseController
	patience time.Duration
	mu       sync.Mutex            // held during Read
	renew    time.Time             // when to extend the deadline
	whole    atomic.Bool           // the body was read to its end
	failed   atomic.Pointer[Error] // why reading it failed
}

// upload begins to read a request's body. Its end must be called.
func (s *Server) upload(c echo.Context, patience time.Duration) *upload {
	u := &upload{all: &s.uploads, body: c.Request().Body, conn: http.NewResponseController(c.Response().Writer), patience: patience}
	s.uploads.add(u)
	return u
}

// watchBody limits how long a body may make no progress (limits.body_timeout), for handlers that read
// it themselves.
func (s *Server) watchBody(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.ContentLength == 0 {
			return next(c)
		}
		u := s.upload(c, s.core.Load().Config.Limits.BodyTimeout)
		defer u.end()
		r.Body = io.NopCloser(u)
		return next(c)
	}
}

// Read implements io.Reader. Its errors except io.EOF are meant for the client.
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
		u.all.remove(u, time.Time{}) // from here on the client only waits
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

// failure returns why the body could not be read, or nil if the request failed for another reason.
// After a failed read net/http may cancel the request's context before Read returns, so failure waits
// for Read.
func (u *upload) failure(ctx context.Context) *Error {
	if ctx.Err() != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
	}
	return u.failed.Load()
}

// maxDiscard limits how long the rest of a refused body is read, and discardPause how long that may bring nothing.
const (
	maxDiscard   = 10 * time.Second
	discardPause = 2 * time.Second
)

// discard flushes the answer to a request whose body was not read, then reads and drops that body. A client that writes its whole
// body before it reads the answer would find the connection broken, and never see why its request was refused.
func discard(c echo.Context) {
	r := c.Request()
	if r.ContentLength == 0 || r.ProtoMajor > 1 || r.Header.Get("Expect") != "" { // who expects a word sends nothing before it
		return
	}
	conn, until := http.NewResponseController(c.Response().Writer), time.Now().Add(maxDiscard)
	if conn.EnableFullDuplex() != nil || conn.Flush() != nil { // without full duplex, the answer waits for 256 KB of the body
		return
	}
	if drop(r.Body, conn.SetReadDeadline, until) {
		return
	}
	// net/http would read what is left of the body as the next request.
	raw, _, err := conn.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer raw.Close()
	if half, ok := raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		drop(raw, raw.SetReadDeadline, until)
	}
}

// drop reads until the end, for at most discardPause without a byte. It reports whether it found the end.
func drop(from io.Reader, setDeadline func(time.Time) error, until time.Time) bool {
	for piece := make([]byte, 32<<10); time.Now().Before(until); {
		_ = setDeadline(time.Now().Add(discardPause))
		if _, err := from.Read(piece); err != nil {
			return err == io.EOF
		}
	}
	return false
}

// end must be called when the rest of the body is not needed; it ends a pending Read.
func (u *upload) end() {
	if !u.whole.Load() {
		u.all.remove(u, time.Now())
	}
}

// uploads are the bodies that are currently being read. Safe for concurrent use; the zero value is
// ready.
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

// allow extends a body's read deadline, unless the gateway is stopping.
func (a *uploads) allow(u *upload, by time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		by = time.Now()
	}
	_ = u.conn.SetReadDeadline(by) // not every connection has one
}

// stop ends all current and later reads.
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
