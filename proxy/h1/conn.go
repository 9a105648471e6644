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

// hostKey identifies interchangeable connections. The host is spelt as in the URL; another spelling
// only costs another pool.
type hostKey struct {
	tls  bool
	host string
}

// addr returns the host:port to connect to.
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

// conn is one connection, owned by an exchange or by the pool.
type conn struct {
	nc      net.Conn // the connection to read and write
	tcp     net.Conn // the same, or the connection below TLS
	key     hostKey
	timeout time.Duration // of one write; not positive: no limit
	head    int           // remaining bytes of a head; negative: not reading a head
	err     error         // the first read error, which is more specific than the parser's error

	reused    time.Time // when it was taken out of the pool; zero for a new connection
	idleSince time.Time
}

// dial connects and, for https, does the TLS handshake. Errors are *DialError.
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

// bounded runs one step of dialling with a time limit. Its error is the cause of ctx if that has
// ended, or wraps os.ErrDeadlineExceeded if the step took too long.
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

// Read implements io.Reader. It limits the bytes of a head.
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

// explain returns the reason of a parser's error: the read error, if there was one.
func (c *conn) explain(err error) error {
	if c.err != nil {
		return unexpected(c.err)
	}
	return fmt.Errorf("%.200s", err) // net/http quotes the invalid input
}

// write writes all pieces with one time limit.
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

// written must be called after the request is written. It removes the write deadline, because TLS may
// have to write during reads.
func (c *conn) written() {
	if c.nc != c.tcp && c.timeout > 0 {
		_ = c.nc.SetWriteDeadline(time.Time{})
	}
}

// abort closes the connection at once and ends all reads and writes. Any goroutine may call it while
// an exchange owns the connection.
func (c *conn) abort() { _ = c.tcp.Close() }

// retire closes an idle connection properly, for TLS with a close notification.
func (c *conn) retire() { _ = c.nc.Close() }

// talks reports whether the peer of an idle connection has sent unexpected data, as opposed to closing
// it. A 408 counts as closing: HAProxy sends it first.
func (c *conn) talks() bool {
	const goodbye = "HTTP/1.1 408"
	b := make([]byte, len(goodbye))
	_ = c.nc.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	n, _ := io.ReadFull(c.nc, b)
	return n > 0 && !(strings.HasPrefix(string(b), "HTTP/1.") && strings.HasSuffix(string(b), " 408"))
}

var errUpgrade = errors.New("server switches protocols without being asked")
