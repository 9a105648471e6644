package h1

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Transport sends requests. It is safe for concurrent use; create it with [New].
type Transport struct {
	cfg     Config
	pool    pool
	readers sync.Pool // of *bufio.Reader, for connections in use
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a Transport. It starts no goroutine and opens no connection.
func New(cfg Config) *Transport {
	cfg = cfg.withDefaults()
	return &Transport{
		cfg:     cfg,
		pool:    pool{timeout: cfg.IdleTimeout, perHost: cfg.MaxIdlePerHost},
		readers: sync.Pool{New: func() any { return bufio.NewReader(nil) }},
	}
}

// CloseIdleConnections closes idle connections. Connections in use are closed when they become idle,
// unless another request comes first.
func (t *Transport) CloseIdleConnections() { t.pool.closeAll() }

// IdleConns returns the number of idle connections.
func (t *Transport) IdleConns() int { return t.pool.count() }

// RoundTrip implements [http.RoundTripper]. Of the request it uses Method, URL, Host, Header, Body,
// ContentLength, GetBody, Close and the context, which also limits reading the response's body. It
// changes none of them, and always closes the body.
//
// Errors are *RequestError, *DialError, *BeforeResponseError, *HeaderError or
// *RequestBodyError; reading the body gives *BodyError. If the context ended
// the request, the error is [context.Cause], inside a *DialError if nothing had
// been sent yet.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	key, err := hostOf(req)
	var head []byte
	if err == nil {
		head, err = writeHead(req)
	}
	if err != nil {
		closeBody(req.Body)
		return nil, &RequestError{err}
	}
	if c := t.idle(key); c != nil {
		x := t.newExchange(c, req, req.Body)
		resp, err := x.run(head)
		if err == nil || !x.stale(err) {
			return resp, err
		}
		if x.unheard(err) {
			t.pool.drop(key) // the other idle connections lead to the same machine
		}
		body := io.ReadCloser(nil)
		if req.GetBody != nil {
			var again error
			if body, again = req.GetBody(); again != nil {
				return nil, &RequestBodyError{errors.Join(err, again)}
			}
		}
		return t.fresh(key, req, body, head)
	}
	return t.fresh(key, req, req.Body, head)
}

// fresh sends a request on a new connection.
func (t *Transport) fresh(key hostKey, req *http.Request, body io.ReadCloser, head []byte) (*http.Response, error) {
	c, err := t.dial(req.Context(), key)
	if err != nil {
		closeBody(body)
		return nil, err
	}
	return t.newExchange(c, req, body).run(head)
}

// idle returns an idle connection whose peer is quiet, or nil.
func (t *Transport) idle(key hostKey) *conn {
	for {
		c := t.pool.get(key)
		if c == nil {
			return nil
		}
		c.reused = time.Now()
		young := t.cfg.IdleTimeout <= 0 || c.reused.Sub(c.idleSince) < t.cfg.IdleTimeout
		if young && c.quiet() {
			return c
		}
		if young && c.talks() {
			t.pool.distrust(key)
		}
		c.retire()
	}
}

func closeBody(b io.Closer) {
	if b != nil {
		_ = b.Close()
	}
}
