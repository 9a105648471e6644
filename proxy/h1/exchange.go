package h1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// exchange is one request and its response on one connection, which it owns until finish. It is also
// the response's body.
type exchange struct {
	t    *Transport
	req  *http.Request
	stop func() bool // stops watching the request's context
	up   upload
	keep bool      // the heads allow the connection to be reused
	sent time.Time // when the connection was taken from the pool; zero for a new one

	own sync.Mutex
	c   *conn // nil after finish; written with mu and own held, so either suffices for reading

	mu     sync.Mutex // held while the body is read
	in     *bufio.Reader
	body   io.ReadCloser // as net/http decodes it
	closed atomic.Bool
	err    error // the result of further reads
}

// newExchange prepares a request with body on a connection.
func (t *Transport) newExchange(c *conn, req *http.Request, body io.ReadCloser) *exchange {
	c.err = nil
	x := &exchange{t: t, c: c, req: req, stop: context.AfterFunc(req.Context(), c.abort)}
	x.up.c, x.up.body, x.up.length, x.up.memory = c, body, bodyLength(req), inMemory(req)
	if body == http.NoBody {
		x.up.body = nil
	}
	x.in = t.readers.Get().(*bufio.Reader)
	x.in.Reset(c)
	return x
}

// run sends the request and reads the response's head.
func (x *exchange) run(head []byte) (*http.Response, error) {
	x.up.start(head)
	x.sent = x.c.reused
	resp, err := x.readHead()
	x.up.answered()
	if err != nil {
		err = x.explain(err, x.up.failure())
		x.finish(false)
		return nil, err
	}
	x.keep = !resp.Close && !x.req.Close
	resp.Request, x.body = x.req, resp.Body
	if resp.Body == http.NoBody {
		x.finish(true)
	} else {
		resp.Body = (*body)(x)
	}
	return resp, nil
}

// readHead reads heads up to that of the final response. All of them share one limit.
func (x *exchange) readHead() (*http.Response, error) {
	x.c.head = x.t.cfg.MaxHeaderBytes
	const alert = 0x15 // the first byte of a TLS server's answer to plain HTTP
	if b, err := x.in.Peek(1); err != nil {
		return nil, &BeforeResponseError{unexpected(err)}
	} else if b[0] == alert {
		return nil, &HeaderError{tls.RecordHeaderError{Msg: "server answers plain HTTP with a TLS alert"}}
	}
	for {
		head := x.peekHead()
		resp, err := http.ReadResponse(x.in, x.req)
		switch {
		case err != nil:
			return nil, &HeaderError{x.c.explain(err)}
		case resp.ProtoMajor != 1 || resp.StatusCode < 100:
			return nil, &HeaderError{fmt.Errorf("%s %.200s", resp.Proto, resp.Status)}
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, &HeaderError{errUpgrade}
		case resp.StatusCode >= 200:
			x.c.head = -1
			if resp.Close {
				restoreConnection(resp.Header, head)
			}
			return resp, nil
		}
	}
}

// peekHead waits for a head as http.ReadResponse does and returns its bytes, which are valid until the
// body is read. It returns nil for a head that ends early or exceeds the buffer.
func (x *exchange) peekHead() []byte {
	for n := 1; n <= x.in.Size(); n = x.in.Buffered() + 1 {
		if _, err := x.in.Peek(n); err != nil {
			return nil
		}
		b, _ := x.in.Peek(x.in.Buffered())
		if i := bytes.Index(b, []byte("\n\r\n")); i >= 0 {
			return b[:i]
		}
		if i := bytes.Index(b, []byte("\n\n")); i >= 0 {
			return b[:i]
		}
	}
	return nil
}

// restoreConnection restores the Connection header, which http.ReadResponse removes if it contains
// "close": it may name further hop-by-hop headers (RFC 9110, section 7.6.1).
func restoreConnection(h http.Header, head []byte) {
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Connection")) {
			h["Connection"] = append(h["Connection"], string(bytes.TrimSpace(value)))
		}
	}
}

// explain selects the error to return: why the caller ended the request, or else why it could not be
// sent, or else why no response came.
func (x *exchange) explain(err, unsent error) error {
	if cause := ctxErr(x.req.Context()); cause != nil {
		return cause
	}
	if unsent == nil {
		return err
	}
	if errors.As(unsent, new(*RequestBodyError)) {
		return unsent
	}
	if errors.As(err, new(*BeforeResponseError)) {
		return &BeforeResponseError{unsent}
	}
	return err
}

// stale reports whether a failed request may be sent again, because the peer had closed its connection
// before it was used, or had died silently. It does not send a completely written POST again after a
// close, because the server may have processed and billed it.
func (x *exchange) stale(err error) bool {
	var before *BeforeResponseError
	if !errors.As(err, &before) || !inMemory(x.req) || ctxErr(x.req.Context()) != nil {
		return false
	}
	closed := (x.up.failure() != nil || idempotent(x.req.Method)) && time.Since(x.sent) < staleWindow && peerClosed(before.Err)
	return closed || x.unheard(before.Err)
}

// unheard reports whether the peer has not acknowledged the request: the connection timed out before
// keep-alive probes could begin, which need everything acknowledged.
func (x *exchange) unheard(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) && time.Since(x.sent) < probeIdle
}

// idempotent reports whether a method may be repeated (RFC 9110, section 9.2.2).
func idempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// finish releases the connection. It goes back to the pool if request and response are complete. x.mu
// is held or x is not shared yet.
func (x *exchange) finish(complete bool) {
	x.own.Lock()
	c := x.c
	x.c = nil
	x.own.Unlock()
	if c == nil {
		return
	}
	if complete && x.in.Buffered() > 0 {
		x.t.pool.distrust(c.key) // the server sent more than the response
		complete = false
	}
	keep := complete && x.keep && x.up.complete()
	// After this only finish may close the connection, or it is not kept.
	if !x.stop() {
		keep = false
	}
	x.in.Reset(nil)
	x.t.readers.Put(x.in)
	if keep {
		x.t.pool.put(c)
		return
	}
	c.abort()
	x.up.abandon()
}

// body is the exchange as a response's body.
type body exchange

// Read implements io.Reader. The package comment describes its errors.
func (b *body) Read(p []byte) (int, error) {
	x := (*exchange)(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.err != nil:
		return 0, x.err
	case x.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := x.body.Read(p)
	if err == nil {
		return n, nil
	}
	x.err = x.ended(err)
	x.finish(x.err == io.EOF)
	return n, x.err
}

// ended turns the error that ended a body into the error of Read.
func (x *exchange) ended(err error) error {
	if err == io.EOF {
		return io.EOF
	}
	if cause := ctxErr(x.req.Context()); cause != nil {
		return cause
	}
	if x.closed.Load() {
		return http.ErrBodyReadAfterClose
	}
	if source := x.up.failure(); errors.As(source, new(*RequestBodyError)) {
		return source
	}
	return &BodyError{x.c.explain(err)}
}

// Close implements io.Closer. It may be called during Read, which then returns an error.
func (b *body) Close() error {
	x := (*exchange)(b)
	if !x.closed.CompareAndSwap(false, true) {
		return nil
	}
	if !x.mu.TryLock() {
		x.own.Lock()
		if x.c != nil {
			x.c.abort()
		}
		x.own.Unlock()
		x.mu.Lock()
	}
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = http.ErrBodyReadAfterClose
		x.finish(x.rest())
	}
	return nil
}

// rest reports whether the rest of the body is buffered, and drops it.
func (x *exchange) rest() bool {
	_ = x.c.nc.SetReadDeadline(time.Unix(1, 0)) // prevents reads from the connection
	_, err := io.Copy(io.Discard, io.LimitReader(x.body, int64(x.in.Buffered())))
	if err == nil {
		_, err = x.body.Read(make([]byte, 1))
	}
	return err == io.EOF && x.c.nc.SetReadDeadline(time.Time{}) == nil
}
