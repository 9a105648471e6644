package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// hostKey names what connections are interchangeable for. The host is spelt as
// in the URL: a second spelling costs a second pool, nothing else.
type hostKey struct {
	tls  bool
	host string
}

// addr is where to connect to.
func (k hostKey) addr() string {
	u := url.URL{Host: k.host}
	port := u.Port()
	if port == "" {
		port = "80"
		if k.tls {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// conn is one connection. Either an exchange owns it or the pool.
type conn struct {
	nc    net.Conn // what is read and written
	tcp   net.Conn // the same, or below TLS
	key   hostKey
	in    reader
	below *socket // tcp's, nil if it has none
	out   outlet

	reused    time.Time // when it was taken out of the pool; zero while it is new
	idleSince time.Time
	aborted   atomic.Bool
	abortFunc func() // abort, made once
}

// dial is connect on a stack of its own, which ends with it: name resolution and
// TLS go deep, and the caller's stack would keep that size for as long as the
// answer lasts. Should connect panic, so does dial.
func (t *Transport) dial(ctx context.Context, key hostKey) (*conn, error) {
	var c *conn
	var err error
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		c, err = t.connect(ctx, key)
	}()
	if p := <-ended; p != nil {
		panic(p)
	}
	return c, err
}

// connect connects and shakes hands. Errors are *DialError.
func (t *Transport) connect(ctx context.Context, key hostKey) (*conn, error) {
	addr := key.addr()
	tcp, err := bounded(ctx, t.cfg.DialTimeout, "connect", func(ctx context.Context) (net.Conn, error) {
		return t.cfg.DialContext(ctx, "tcp", addr)
	})
	if err != nil {
		return nil, &DialError{addr, err}
	}
	c := &conn{nc: tcp, tcp: tcp, key: key, below: newSocket(tcp, t.release)}
	c.abortFunc = c.abort
	if key.tls {
		cfg := t.cfg.TLS
		if cfg.ServerName == "" {
			cfg = cfg.Clone()
			u := url.URL{Host: key.host}
			cfg.ServerName, _, _ = strings.Cut(u.Hostname(), "%")
		}
		tc := tls.Client(tcp, cfg)
		_, err := bounded(ctx, t.cfg.TLSHandshakeTimeout, "TLS handshake", func(ctx context.Context) (net.Conn, error) {
			return nil, tc.HandshakeContext(ctx)
		})
		if err == nil {
			if p := tc.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
				err = fmt.Errorf("server insists on protocol %q", p)
			}
		}
		if err != nil {
			_ = tcp.Close()
			return nil, &DialError{addr, err}
		}
		c.nc = tc
	}
	c.in = reader{src: c.nc, reads: &t.reads}
	c.out = outlet{nc: c.nc, timeout: t.cfg.WriteTimeout}
	return c, nil
}

// bounded runs one step of dialling. Its error is the context's cause if that
// has ended, and os.ErrDeadlineExceeded if the step took too long.
func bounded(ctx context.Context, limit time.Duration, what string, step func(context.Context) (net.Conn, error)) (net.Conn, error) {
	sctx := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		sctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	nc, err := step(sctx)
	if err == nil {
		return nc, nil
	}
	if cause := ctxErr(ctx); cause != nil {
		return nil, cause
	}
	if ctxErr(sctx) != nil {
		return nil, fmt.Errorf("no %s within %v: %w", what, limit, os.ErrDeadlineExceeded)
	}
	return nil, err
}

// write writes all of p, in pieces that each have at least the whole time-out.
func (c *conn) write(p []byte) error {
	if err := c.out.write(p); err != nil {
		return err
	}
	if c.nc != c.tcp && !c.out.by.IsZero() { // TLS may have to write while it reads, at any time
		return c.out.limit(time.Time{})
	}
	return nil
}

// abort ends whatever goes on with the connection, at once. It may be called
// at any time by any goroutine as long as an exchange owns the connection.
func (c *conn) abort() {
	c.aborted.Store(true)
	_ = c.tcp.Close()
}

// retire closes an idle connection with TLS's farewell, so that the server
// knows it was no accident.
func (c *conn) retire() { _ = c.nc.Close() }

// alive reports whether an idle connection looks as if it could be used:
// its peer has neither closed it nor sent something that nobody asked for.
func (c *conn) alive() bool { return c.below.alive() }

// asks reports whether the connection was used before and is looked at as a
// request that is all in memory is written.
func (c *conn) asks() bool { return !c.reused.IsZero() && !c.key.tls && c.below.asks() }

// errDead means that an idle connection turned out not to be alive: nothing was sent.
var errDead = errors.New("connection died while it was idle")

var errUpgrade = errors.New("server switches protocols though nobody asked")
