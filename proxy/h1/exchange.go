package h1

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery/ending"
)

// exchange is one request and its response on one connection, which it owns
// until finish. It is also the response's body.
type exchange struct {
	t    *Transport
	req  *http.Request
	stop func() bool // ends the watch on the request's context; nil if it cannot end
	up   *upload     // nil if the request was written at once
	keep bool        // the connection may be used again, as far as the heads go
	sent time.Time   // on a connection that was used before

	own sync.Mutex
	c   *conn // nil after finish; written with mu and own, so that either is enough to read it

	mu      sync.Mutex // held by whoever reads the body
	closed  atomic.Bool
	err     error // what Read returns from now on
	payload payload

	resp   http.Response
	unsent bool // the request could not be written whole
}

func newExchange(t *Transport, c *conn, req *http.Request) *exchange {
	return &exchange{t: t, c: c, req: req, keep: true, stop: ending.AfterFunc(req.Context(), c.abortFunc)}
}

// run writes the request and reads the response's head.
func (x *exchange) run(o *outgoing) (*http.Response, error) {
	c := x.c
	x.keep = !o.close
	unsent, err := x.write(o)
	if err != nil {
		x.finish(false)
		return nil, err
	}
	if unsent != nil {
		x.keep = false
		_ = c.nc.SetReadDeadline(time.Now().Add(lastWords))
	}
	err = x.readHead()
	if x.up != nil {
		x.up.answered()
		if err != nil && unsent == nil {
			unsent = x.up.failure()
		}
	}
	if err != nil {
		x.unsent = unsent != nil
		err = x.explain(err, unsent)
		x.finish(false)
		return nil, err
	}
	if unsent != nil {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	x.resp.Request = x.req
	if x.payload.kind == noPayload {
		x.resp.Body = http.NoBody
		x.finish(true)
	} else {
		x.resp.Body = (*body)(x)
	}
	return &x.resp, nil
}

// write writes the request, or has an upload do that. The first error is why the
// request could not be sent, the other is errDead.
func (x *exchange) write(o *outgoing) (unsent, dead error) {
	c := x.c
	x.sent = c.reused
	if o.body != nil {
		x.up = startUpload(c, o, x.t.release)
		return nil, nil
	}
	left := o.buf
	if c.asks() {
		var alive bool
		if alive, left, unsent = c.below.ask(o, &c.in); !alive {
			return nil, errDead
		}
	}
	if len(left) > 0 {
		unsent = c.write(left)
		x.t.release(o)
		if !c.reused.IsZero() {
			x.sent = time.Now()
		}
	}
	return unsent, nil
}

// readHead reads heads until one is of a final response. All of them share one limit.
func (x *exchange) readHead() error {
	in := &x.c.in
	limit := x.t.cfg.MaxHeaderBytes
	for begun := false; ; begun = true {
		raw, err := in.head(limit)
		if err != nil {
			if !begun && in.buffered() == 0 {
				return &BeforeResponseError{unexpected(err)}
			}
			return &HeaderError{unexpected(err)}
		}
		if err := in.response(raw, &x.resp); err != nil {
			return &HeaderError{err}
		}
		in.r += len(raw)
		limit -= len(raw)
		switch {
		case x.resp.StatusCode == http.StatusSwitchingProtocols:
			return &HeaderError{errUpgrade}
		case x.resp.StatusCode < 200:
			continue
		}
		var keep bool
		x.payload, keep, err = frame(x.req.Method, &x.resp)
		if err != nil {
			return &HeaderError{err}
		}
		x.payload.in, x.payload.trailer = in, x.t.cfg.MaxHeaderBytes
		x.keep = x.keep && keep
		in.settle() // the body may be long in coming
		return nil
	}
}

// explain chooses what to tell of a failure: why the request was ended by its
// owner, or else why it could not be sent, or else why no response came.
func (x *exchange) explain(err, unsent error) error {
	if cause := ctxErr(x.req.Context()); cause != nil {
		return cause
	}
	if unsent == nil {
		return err
	}
	if _, ours := unsent.(*RequestBodyError); ours {
		return unsent
	}
	if _, nothing := err.(*BeforeResponseError); nothing {
		return &BeforeResponseError{unsent}
	}
	return err
}

// stale reports whether a failed request may be made again because its
// connection had been closed by the peer before it was used. A POST that was
// written whole may have arrived: whether it is paid for twice is not decided here.
func (x *exchange) stale(err error) bool {
	before, ok := err.(*BeforeResponseError)
	return ok && (x.unsent || idempotent(x.req.Method)) && !x.sent.IsZero() && time.Since(x.sent) < staleWindow && peerClosed(before.Err) &&
		inMemory(x.req) && ctxErr(x.req.Context()) == nil
}

// idempotent methods may be repeated (RFC 9110, section 9.2.2).
func idempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// finish ends the exchange's use of its connection, which goes back to the
// pool if everything that was sent either way is complete. x.mu is held or x
// is not shared yet.
func (x *exchange) finish(complete bool) {
	x.own.Lock()
	c := x.c
	x.c = nil
	x.own.Unlock()
	if c == nil {
		return
	}
	keep := complete && x.keep && c.in.buffered() == 0 && c.in.err == nil
	if keep && x.up != nil {
		keep = x.up.complete()
	}
	// From here on nobody else closes the connection, or it is not kept.
	if x.stop != nil && !x.stop() {
		keep = false
	}
	c.in.release()
	if keep {
		x.t.pool.put(c)
		return
	}
	c.abort()
	if x.up != nil {
		x.up.abandon()
	}
}

// body is the exchange as a response's body.
type body exchange

// Read implements io.Reader. See the package's comment for what its end means.
func (b *body) Read(p []byte) (int, error) {
	x := (*exchange)(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.err != nil:
		return 0, x.err
	case x.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	case len(p) == 0:
		return 0, nil
	}
	var n int
	var err error
	if x.c.aborted.Load() {
		err = net.ErrClosed
	} else {
		n, err = x.payload.Read(p)
	}
	if err == nil {
		return n, nil
	}
	x.err = x.ended(err)
	x.finish(x.err == io.EOF)
	return n, x.err
}

// ended turns the error that ended a body into what Read tells.
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
	if x.up != nil {
		if source, ok := x.up.failure().(*RequestBodyError); ok {
			return source
		}
	}
	return &BodyError{err}
}

// Close implements io.Closer. It may be called while Read waits, which then
// returns an error.
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
		x.finish(x.payload.drain())
	}
	return nil
}
