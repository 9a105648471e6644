package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
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
	nc      net.Conn // what is read and written
	tcp     net.Conn // the same, or below TLS
	key     hostKey
	timeout time.Duration // of a write; not positive: none
	head    int           // how many bytes may be read of a head; negative: this is no head
	err     error         // the first of a read: it explains more than what a parser makes of it

	reused    time.Time // when it was taken out of the pool; zero while it is new
	idleSince time.Time
}

// dial connects and shakes hands. Errors are *DialError.
func (t *Transport) dial(ctx context.Context, key hostKey) (*conn, error) {
	addr := key.addr()
	if err := ctxErr(ctx); err != nil {
		return nil, &DialError{addr, err}
	}
	tcp, err := bounded(ctx, t.cfg.DialTimeout, "connect", func(ctx context.Context) (net.Conn, error) {
		return t.cfg.DialContext(ctx, "tcp", addr)
	})
	if err != nil {
		return nil, &DialError{addr, err}
	}
	c := &conn{nc: tcp, tcp: tcp, key: key, timeout: t.cfg.WriteTimeout}
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

// Read implements io.Reader. It bounds the bytes of a head.
func (c *conn) Read(p []byte) (n int, err error) {
	switch {
	case c.head < 0:
		n, err = c.nc.Read(p)
	case c.head == 0:
		err = ErrHeaderTooLarge
	default:
		n, err = c.nc.Read(p[:min(len(p), c.head)])
		c.head -= n
	}
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// explain is why a parser of what was read has failed.
func (c *conn) explain(err error) error {
	if c.err != nil {
		return unexpected(c.err)
	}
	return fmt.Errorf("%.200s", err) // it quotes what it does not like
}

// write writes all of these with one time-out.
func (c *conn) write(pieces ...[]byte) error {
	if c.timeout > 0 {
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return err
		}
	}
	bufs := net.Buffers(pieces)
	_, err := bufs.WriteTo(c.nc)
	return err
}

// written ends the writing of a request: TLS may have to write while it reads, at any time.
func (c *conn) written() {
	if c.nc != c.tcp && c.timeout > 0 {
		_ = c.nc.SetWriteDeadline(time.Time{})
	}
}

// abort ends whatever goes on with the connection, at once. It may be called
// at any time by any goroutine as long as an exchange owns the connection.
func (c *conn) abort() { _ = c.tcp.Close() }

// retire closes an idle connection with TLS's farewell, so that the server
// knows it was no accident.
func (c *conn) retire() { _ = c.nc.Close() }

// talks reports whether the peer of an idle connection that is not quiet says
// something, rather than good-bye. A 408 is a good-bye, as HAProxy says it.
func (c *conn) talks() bool {
	const goodbye = "HTTP/1.1 408"
	b := make([]byte, len(goodbye))
	_ = c.nc.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	n, _ := io.ReadFull(c.nc, b)
	return n > 0 && !(strings.HasPrefix(string(b), "HTTP/1.") && strings.HasSuffix(string(b), " 408"))
}

var errUpgrade = errors.New("server switches protocols though nobody asked")
