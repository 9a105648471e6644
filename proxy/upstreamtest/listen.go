package upstreamtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Running is a Server with listener. Its methods are safe for concurrent use.
type Running struct {
	*Server

	listener net.Listener
	http     *http.Server
	cancel   context.CancelCauseFunc
	served   chan struct{}

	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup
}

// Listen serves on a TCP address such as 127.0.0.1:0 until Close.
func (s *Server) Listen(addr string) (*Running, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	if s.opts.TLS != nil {
		l = tls.NewListener(l, s.opts.TLS)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Running{Server: s, listener: l, cancel: cancel, served: make(chan struct{})}
	r.http = &http.Server{
		Handler:           http.HandlerFunc(r.handle),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.conns.Add(1)
			}
		},
	}
	go func() {
		defer close(r.served)
		_ = r.http.Serve(l) // it always returns an error, after Close
	}()
	return r, nil
}

// FreeAddr returns a free loopback address for a program that needs one to listen on.
// The port is below the ephemeral range, so that no outgoing connection takes it
// meanwhile.
func FreeAddr() (string, error) {
	for range 200 {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(10000+rand.IntN(22000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no free port of the loopback was found")
}

// TB is the part of testing.TB that Start needs; it keeps package testing out
// of programs that use this package.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start serves on a free port of the loopback until the test ends.
func (s *Server) Start(t TB) *Running {
	t.Helper()
	r, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting the scripted upstream: %v", err)
	}
	t.Cleanup(r.Close)
	return r
}

// URL returns the address without a path: http://127.0.0.1:port.
func (r *Running) URL() string {
	if r.opts.TLS != nil {
		return "https://" + r.Addr()
	}
	return "http://" + r.Addr()
}

// Addr returns host and port.
func (r *Running) Addr() string { return r.listener.Addr().String() }

// Close stops listening, breaks every connection and returns when all handlers
// have returned. It may be called again.
func (r *Running) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel(http.ErrServerClosed)
	r.http.Close()
	r.handlers.Wait()
	<-r.served
}

func (r *Running) handle(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	r.handlers.Add(1)
	r.mu.Unlock()
	defer r.handlers.Done()
	r.ServeHTTP(w, req)
}
