package h1

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ServerConfig is what a [Server] can be told. Only Handler is needed.
type ServerConfig struct {
	Handler http.Handler
	// HeadTimeout bounds a request's head from its first byte on. Default 10 s;
	// negative means no bound.
	HeadTimeout time.Duration
	// IdleTimeout is how long a connection may wait for its next request; it is
	// closed between that and half as much again. Default 120 s; negative means
	// for ever.
	IdleTimeout time.Duration
	// WriteTimeout is what each write of up to 256 KiB may take; it is ended
	// between that and half as much again. Default 30 s; negative means no bound.
	WriteTimeout time.Duration
	// MaxHeaderBytes bounds a request's head, and separately its trailers.
	// Default 64 KiB.
	MaxHeaderBytes int
	// Refuse makes the body of an answer to a request that is no request: it
	// never reaches the handler. The default is the reason in plain text.
	Refuse func(status int, reason string) (contentType string, body []byte)
	// Log is told of panics and failures of the listener. Default [slog.Default].
	Log *slog.Logger
}

const (
	// watchAfter is when a handler that still works has its client watched: most
	// clients that leave do so later, and to watch costs as much as a small request.
	watchAfter = 10 * time.Millisecond
	// lingerTime is how long a client may take to read an answer before the
	// connection on which it was still sending is closed, which would destroy it.
	lingerTime = 500 * time.Millisecond
	// gatherBytes is how much of an answer waits for its end or a flush.
	gatherBytes = 4 << 10
	// keepOut is the capacity above which an answer's memory is not kept.
	keepOut = 64 << 10
	// acceptPause is the longest wait after the listener failed for a while.
	acceptPause = time.Second
)

// Server is an HTTP/1.1 server in which one goroutine does all the work of a
// connection, at least for requests that are answered at once. Its handlers see
// what net/http's server would show them; it has no TLS, no HTTP/2 and no
// Hijack, drops trailers and adds no Content-Type. It is stricter in what might be
// two requests for somebody else on the way: see the refusals of request.go.
//
// A ResponseWriter may be used by one goroutine at a time until the handler
// returns. Its Write gathers up to 4 KiB, and then or at a Flush it sends what
// it has with one system call; between flushes it has no memory.
type Server struct {
	cfg   ServerConfig
	reads sync.Pool // of *[readBuffer]byte
	outs  sync.Pool // of *[]byte
	date  clock

	ending atomic.Bool   // Shutdown or Close was called
	ended  chan struct{} // closed then

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	links     map[*link]struct{}
	empty     chan struct{} // closed when no connection is left; nil until someone waits
}

// NewServer returns a Server. It starts nothing.
func NewServer(cfg ServerConfig) *Server {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&cfg.HeadTimeout, 10 * time.Second},
		{&cfg.IdleTimeout, 120 * time.Second},
		{&cfg.WriteTimeout, 30 * time.Second},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if cfg.MaxHeaderBytes <= 0 {
		cfg.MaxHeaderBytes = 64 << 10
	}
	if cfg.Refuse == nil {
		cfg.Refuse = func(_ int, reason string) (string, []byte) { return "text/plain; charset=utf-8", []byte(reason + "\n") }
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Server{
		cfg:       cfg,
		reads:     newReads(),
		outs:      sync.Pool{New: func() any { b := make([]byte, 0, gatherBytes); return &b }},
		ended:     make(chan struct{}),
		listeners: map[net.Listener]struct{}{},
		links:     map[*link]struct{}{},
	}
}

// Serve accepts connections until the listener fails for good or the server is
// ended, which is [http.ErrServerClosed]. It closes the listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.listen(l) {
		return http.ErrServerClosed
	}
	defer s.unlisten(l)
	var wait time.Duration
	for {
		nc, err := l.Accept()
		if err == nil {
			wait = 0
			if k := newLink(s, nc); s.admit(k) {
				go k.serve()
			} else {
				_ = nc.Close()
			}
			continue
		}
		if s.ending.Load() {
			return http.ErrServerClosed
		}
		if !passing(err) {
			return err
		}
		wait = min(max(2*wait, 5*time.Millisecond), acceptPause)
		s.cfg.Log.Warn("accepting a connection failed", "error", err, "wait", wait)
		select {
		case <-time.After(wait):
		case <-s.ended:
			return http.ErrServerClosed
		}
	}
}

// passing reports whether the listener may work again: it ran out of something.
func passing(err error) bool {
	var t interface{ Temporary() bool } // deprecated for all but this
	return errors.As(err, &t) && t.Temporary()
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) unlisten(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

func (s *Server) admit(k *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() {
		return false
	}
	s.links[k] = struct{}{}
	return true
}

func (s *Server) forget(k *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, k)
	if len(s.links) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// end stops listening and calls each for every connection. The returned
// channel is closed when none is left.
func (s *Server) end(each func(*link)) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending.Swap(true) {
		close(s.ended)
	}
	for l := range s.listeners {
		_ = l.Close()
	}
	for k := range s.links {
		each(k)
	}
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	done := s.empty
	if len(s.links) == 0 {
		close(s.empty)
		s.empty = nil
	}
	return done
}

// Shutdown stops listening, closes connections that wait for a request and
// returns when the others have had their answers, or with ctx's error when
// that ends first.
func (s *Server) Shutdown(ctx context.Context) error {
	done := s.end((*link).retire)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close stops listening, cancels the requests under way and closes every
// connection. It does not wait for handlers to return.
func (s *Server) Close() error {
	s.end((*link).abort)
	return nil
}
