package h1

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Transport makes requests. It is safe for concurrent use; make it with [New].
type Transport struct {
	cfg     Config
	pool    pool
	reads   sync.Pool // of *[readBuffer]byte
	encoded sync.Pool // of *outgoing
	last    atomic.Pointer[opening]
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a Transport. It starts nothing and opens no connection.
func New(cfg Config) *Transport {
	cfg = cfg.withDefaults()
	return &Transport{
		cfg:     cfg,
		pool:    pool{timeout: cfg.IdleTimeout, perHost: cfg.MaxIdlePerHost},
		reads:   newReads(),
		encoded: sync.Pool{New: func() any { return &outgoing{buf: make([]byte, 0, 4<<10)} }},
	}
}

// CloseIdleConnections closes the connections that no request uses. Those in
// use are closed at their end, unless another request comes first.
func (t *Transport) CloseIdleConnections() { t.pool.closeAll() }

// IdleConns returns how many connections no request uses.
func (t *Transport) IdleConns() int { return t.pool.count() }

// RoundTrip implements [http.RoundTripper]. It uses of the request: Method,
// URL, Host, Header, Body, ContentLength, GetBody, Close and the context, which
// also bounds the reading of the response's body. It changes none of them, and
// closes the body in any case.
//
// Errors are *RequestError, *DialError, *BeforeResponseError, *HeaderError or
// *RequestBodyError; reading the body gives *BodyError. If the context ended
// the request, the error is [context.Cause], inside a *DialError if nothing had
// been sent yet.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	o := t.encoded.Get().(*outgoing)
	*o = outgoing{buf: o.buf[:0]}
	size := unread(req)
	begin, err := t.opening(req)
	if err == nil {
		err = o.encode(req, begin.head, req.Body, t.cfg.Omit)
	}
	if err != nil {
		closeBody(req.Body)
		t.release(o)
		return nil, err
	}
	if err = ctxErr(req.Context()); err != nil {
		closeBody(o.body)
		t.release(o)
		return nil, &DialError{begin.key.addr(), err}
	}
	for {
		c := t.idle(begin.key, o)
		if c == nil {
			return t.fresh(req, begin, size, o)
		}
		x := newExchange(t, c, req)
		resp, err := x.run(o)
		if err == errDead {
			if err = ctxErr(req.Context()); err == nil {
				continue
			}
			t.release(o)
			return nil, &DialError{begin.key.addr(), err}
		}
		if err == nil || !x.stale(err) {
			return resp, err
		}
		resp, again := t.anew(req, begin, size)
		if again != nil && errors.As(again, new(*RequestBodyError)) {
			again = errors.Join(err, again)
		}
		return resp, again
	}
}

// fresh makes a request on a new connection. While it waits for that, one that
// is all in o keeps no memory there: many may wait at the same time.
func (t *Transport) fresh(req *http.Request, begin *opening, size int64, o *outgoing) (*http.Response, error) {
	if o.body == nil {
		t.release(o)
		return t.anew(req, begin, size)
	}
	c, err := t.dial(req.Context(), begin.key)
	if err != nil {
		closeBody(o.body)
		t.release(o)
		return nil, err
	}
	return newExchange(t, c, req).run(o)
}

// anew makes a request that was encoded before, whose body is in memory, on a
// new connection: there was none yet, or it was closed before the request had
// reached its peer.
func (t *Transport) anew(req *http.Request, begin *opening, size int64) (*http.Response, error) {
	c, err := t.dial(req.Context(), begin.key)
	if err != nil {
		return nil, err
	}
	body, err := rewind(req, size)
	if err != nil {
		c.retire()
		return nil, &RequestBodyError{err}
	}
	o := t.encoded.Get().(*outgoing)
	*o = outgoing{buf: o.buf[:0]}
	if err := o.encode(req, begin.head, body, t.cfg.Omit); err != nil {
		closeBody(body)
		t.release(o)
		c.retire()
		return nil, err
	}
	return newExchange(t, c, req).run(o)
}

// idle returns a connection that was used before, or nil. It seems to be alive,
// unless that will be seen as the request is written.
func (t *Transport) idle(key hostKey, o *outgoing) *conn {
	for {
		c := t.pool.get(key)
		if c == nil {
			return nil
		}
		c.reused = time.Now()
		young := t.cfg.IdleTimeout <= 0 || c.reused.Sub(c.idleSince) < t.cfg.IdleTimeout
		if young && (o.body == nil && c.asks() || c.alive()) {
			return c
		}
		c.retire()
	}
}

// release gives an encoded request's memory back, unless it grew too large to keep.
func (t *Transport) release(o *outgoing) {
	if cap(o.buf) > inlineBody+16<<10 {
		return
	}
	*o = outgoing{buf: o.buf[:0]}
	t.encoded.Put(o)
}

// hostOf checks the parts of a request that choose the connection.
func hostOf(req *http.Request) (hostKey, error) {
	if req.URL == nil {
		return hostKey{}, &RequestError{errors.New("no URL")}
	}
	key := hostKey{tls: req.URL.Scheme == "https", host: req.URL.Host}
	if !key.tls && req.URL.Scheme != "http" {
		return key, &RequestError{fmt.Errorf("scheme %.20q", req.URL.Scheme)}
	}
	if !validHost(key.host) || req.URL.Hostname() == "" {
		return key, &RequestError{fmt.Errorf("host %.80q", key.host)}
	}
	return key, nil
}

func closeBody(b io.Closer) {
	if b != nil {
		_ = b.Close()
	}
}
