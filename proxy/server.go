package proxy

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/proxy/h1"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Server is the edge. Its core can be swapped while it serves.
type Server struct {
	core   atomic.Pointer[Core]
	echo   *echo.Echo
	http   *h1.Server
	parser *transcript.Parser
	meter  Meter
	ready  func() error

	draining atomic.Bool
	active   atomic.Int64 // requests under way
}

// Handlers are the parts of the edge that belong to others: nil ones are not served.
type Handlers struct {
	Metrics http.Handler // GET /metrics
	Admin   http.Handler // /rebound/
	// Ready tells why the gateway is not ready, nil when it is.
	Ready func() error
}

// NewServer builds the edge around a core.
func NewServer(core *Core, meter Meter, log *slog.Logger, h Handlers) *Server {
	s := &Server{parser: transcript.NewParser(), meter: meter, ready: h.Ready}
	s.core.Store(core)
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.onError
	e.IPExtractor = echo.ExtractIPDirect() // headers that clients set are not believed
	s.echo = e

	for _, path := range []string{"/v1/chat/completions", "/chat/completions", "/openai/deployments/:deployment/chat/completions"} {
		e.POST(path, s.chat)
	}
	e.GET("/v1/models", s.models)
	e.GET("/models", s.models)
	e.GET("/v1/responses", s.noWebSocket)
	e.GET("/responses", s.noWebSocket)
	e.Any("/v1/*", s.passthrough)
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.readyz)
	if h.Metrics != nil {
		e.GET("/metrics", echo.WrapHandler(s.admin(h.Metrics)))
	}
	if h.Admin != nil {
		e.Any("/rebound/*", echo.WrapHandler(s.admin(h.Admin)))
	}

	lim := core.Config.Limits
	s.http = h1.NewServer(h1.ServerConfig{
		Handler:     http.HandlerFunc(s.serve),
		HeadTimeout: lim.HeadTimeout, IdleTimeout: lim.IdleTimeout, WriteTimeout: lim.WriteStall,
		MaxHeaderBytes: lim.Headers,
		Refuse:         s.refuse,
		Log:            log,
	})
	return s
}

// serve refuses new requests while draining; everything else is echo's.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() && r.URL.Path != "/healthz" {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		writeError(w, failf(http.StatusServiceUnavailable, "draining", "This gateway is stopping. Try again."))
		return
	}
	s.active.Add(1)
	defer s.active.Add(-1)
	s.echo.ServeHTTP(w, r)
}

// Handler serves the edge without a listener of its own, for embedding and tests.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Swap replaces the core. Requests under way keep theirs.
func (s *Server) Swap(core *Core) { s.core.Store(core) }

// Serve accepts connections until Shutdown.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// Shutdown refuses new requests and waits until those under way are answered,
// or ctx ends; then it cuts what is left. The listener stays open meanwhile: a
// client deserves to be told.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.idle(ctx)
	err := ctx.Err()
	if err == nil {
		return s.http.Shutdown(ctx)
	}
	_ = s.http.Close()
	bounded, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.idle(bounded) // what was cut still reports its end
	return err
}

// idle waits until no request is under way, or ctx ends.
func (s *Server) idle(ctx context.Context) {
	for s.active.Load() > 0 && pause(ctx, 10*time.Millisecond) {
	}
}

// readyz tells a load balancer whether to send requests here.
func (s *Server) readyz(c echo.Context) error {
	if s.ready != nil {
		if err := s.ready(); err != nil {
			return failf(http.StatusServiceUnavailable, "not_ready", "%v", err)
		}
	}
	return c.String(http.StatusOK, "ready\n")
}

// noWebSocket answers a client that tries the WebSocket form first: 426 makes
// it fall back to POST at once, where 404 costs it seven tries.
func (s *Server) noWebSocket(c echo.Context) error {
	if !strings.EqualFold(c.Request().Header.Get("Upgrade"), "websocket") {
		return s.passthrough(c)
	}
	return failf(http.StatusUpgradeRequired, "no_websocket", "WebSocket is not served here; use POST.")
}

// requestID names a request in logs. It is no secret.
func requestID() string {
	const prefix = "req_"
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], rand.Uint64())
	var b [len(prefix) + 16]byte
	return string(hex.AppendEncode(append(b[:0], prefix...), n[:]))
}

// pause waits d or until ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
