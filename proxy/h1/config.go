package h1

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Config is what a [Transport] can be told. The zero value is ready to use.
type Config struct {
	// DialTimeout bounds name lookup and TCP connect together. Default 10 s;
	// negative means no bound but the request's context.
	DialTimeout time.Duration
	// TLSHandshakeTimeout bounds the handshake alone. Default 10 s; negative
	// means no bound but the request's context.
	TLSHandshakeTimeout time.Duration
	// WriteTimeout is what each write of up to 256 KiB may take, so a large body
	// may take as long as it makes progress. Default 30 s; negative means no bound.
	WriteTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept. Default 90 s;
	// negative means for ever.
	IdleTimeout time.Duration
	// MaxIdlePerHost bounds the unused connections to one scheme, host and
	// port. It should exceed the usual number of parallel requests: beyond it
	// each request pays for a connection of its own. Default 4096; negative
	// means that no connection is used twice.
	MaxIdlePerHost int
	// MaxHeaderBytes bounds status line and headers of one response, with all
	// informational responses before it. Default 256 KiB.
	MaxHeaderBytes int
	// TLS is used for https. It is cloned; ServerName is the URL's host unless
	// set, NextProtos is replaced, and a session cache is added if there is none.
	TLS *tls.Config
	// DialContext replaces [NewDialer], mostly for tests. A connection that
	// is no syscall.Conn cannot be checked before it is used again.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	// inlineBody is the largest body that the calling goroutine writes itself.
	// With the socket buffers of both sides it fits on its way even if the
	// server does not read it.
	inlineBody = 64 << 10
	// writePiece is the largest single write, the unit of WriteTimeout.
	writePiece = 256 << 10
	// staleWindow is how long after writing the loss of a connection that was
	// used before is taken for one that had happened earlier.
	staleWindow = 2 * time.Second
	// uploadGrace is how long a complete response waits for the end of its own
	// request, whose last bytes the server must have read already.
	uploadGrace = 50 * time.Millisecond
	// lastWords is how long to wait for a response when the request could not
	// be written, because the server answered and closed.
	lastWords = 250 * time.Millisecond
)

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.DialTimeout, 10 * time.Second},
		{&c.TLSHandshakeTimeout, 10 * time.Second},
		{&c.WriteTimeout, 30 * time.Second},
		{&c.IdleTimeout, 90 * time.Second},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if c.MaxIdlePerHost == 0 {
		c.MaxIdlePerHost = 4096
	}
	if c.MaxHeaderBytes <= 0 {
		c.MaxHeaderBytes = 256 << 10
	}
	if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	} else {
		c.TLS = c.TLS.Clone()
	}
	c.TLS.NextProtos = []string{"http/1.1"}
	if c.TLS.ClientSessionCache == nil {
		c.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if c.DialContext == nil {
		c.DialContext = NewDialer(0).DialContext // bounded by its context
	}
	return c
}
