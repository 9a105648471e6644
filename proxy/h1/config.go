package h1

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Config configures a [Transport]. The zero value is ready to use.
type Config struct {
	// DialTimeout limits name lookup and TCP connect together. Default 10 s; negative means that only
	// the request's context limits them.
	DialTimeout time.Duration
	// TLSHandshakeTimeout limits the handshake alone. Default 10 s; negative means that only the
	// request's context limits it.
	TLSHandshakeTimeout time.Duration
	// WriteTimeout limits each write of up to 256 KiB, so a large body may take any time as long as it
	// makes progress. Default 30 s; negative means no limit.
	WriteTimeout time.Duration
	// IdleTimeout is how long an unused connection is kept. Default 90 s; negative means no limit.
	IdleTimeout time.Duration
	// MaxIdlePerHost limits the unused connections to one scheme, host and port. It should exceed the
	// usual number of parallel requests: each request beyond it pays for a new connection. Default
	// 4096; negative means that connections are not reused.
	MaxIdlePerHost int
	// MaxHeaderBytes limits the status line and headers of one response, including all informational
	// responses before it, in bytes. Default 256 KiB.
	MaxHeaderBytes int
	// TLS is used for https. It is cloned; ServerName is the URL's host unless
	// set, NextProtos is replaced, and a session cache is added if there is none.
	TLS *tls.Config
	// DialContext replaces [NewDialer], mostly for tests. A connection that does not implement
	// syscall.Conn cannot be checked before it is reused.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	// inlineBody is the largest body that the calling goroutine writes itself, in bytes. It fits into
	// the socket buffers of both sides even if the server does not read it.
	inlineBody = 64 << 10
	// writePiece is the largest single write, in bytes, to which WriteTimeout applies.
	writePiece = 256 << 10
	// staleWindow is how long after a write on a reused connection its loss counts as an earlier loss.
	staleWindow = 2 * time.Second
	// uploadGrace is how long a complete response waits for the last write of its request to return.
	uploadGrace = 50 * time.Millisecond
	// lastWords is how long to wait for a response after the request could not be written: the server
	// may have answered and closed.
	lastWords = 250 * time.Millisecond
)

// withDefaults replaces zero fields by their defaults.
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
		c.DialContext = NewDialer(0).DialContext // limited by its context
	}
	return c
}
