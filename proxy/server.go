package proxy

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Server is the edge: echo's router on net/http's server. Its core can be
// swapped while it serves.
type Server struct {
	core     atomic.Pointer[Core]
	cert     atomic.Pointer[tls.Certificate] // the newest; nil without TLS
	echo     *echo.Echo
	inside   *echo.Echo       // serves /rebound/ and /metrics; equal to echo unless these have an address of their own
	pass     echo.HandlerFunc // forwards requests that are no completions
	parser   *transcript.Parser
	inFlight InFlight
	via      string // the gateway's own value of the Via header
	log      *slog.Logger
	ready    func() error

	draining atomic.Bool
	active   atomic.Int64 // active requests
	uploads  uploads
	tries    tries // with a wrong admin token
	guesses  tries // with a wrong gateway key
	places   pool  // active requests, if limits.concurrent is set
	memory   pool  // bytes of their bodies
}

const metricsPath = "/metrics"

// Handlers are handlers that other packages provide; nil ones are not served.
type Handlers struct {
	Metrics http.Handler // GET /metrics
	Admin   http.Handler // /rebound/
	// Ready returns an error that says why the gateway is not ready, or nil.
	Ready func() error
}

// NewServer builds the edge around a core.
func NewServer(core *Core, inFlight InFlight, log *slog.Logger, h Handlers) *Server {
	s := &Server{parser: transcript.NewParser(), inFlight: inFlight, via: newVia(), log: log, ready: h.Ready, memory: pool{open: 0.5},
		guesses: tries{free: freeGuesses}}
	s.Swap(core)
	e := s.newEcho(core.Config.Limits)
	e.Pre(stripPrefix(core.Config.Prefix), withoutPrefix)
	s.echo, s.inside = e, e
	if core.Config.Admin.Listen != "" {
		s.inside = s.newEcho(core.Config.Limits)
	}
	s.pass = s.admitted(s.passthrough)

	for _, w := range wires {
		for _, path := range w.routes {
			e.POST(path, s.completion(&w))
			for _, more := range w.relays {
				e.POST(path+more, s.completion(w.relay(more)))
			}
		}
	}
	e.HEAD("/api/hello", func(c echo.Context) error { return c.NoContent(http.StatusOK) }) // Claude Code checks that the server is reachable
	e.GET("/models", s.models)
	e.GET("/models/*", s.model)
	e.GET("/responses", s.noWebSocket)
	v1 := e.Group("/v1")
	v1.GET("/models", s.models)
	v1.Any("/models/*", s.model)
	v1.GET("/responses", s.noWebSocket)
	v1.Any("/*", s.pass)
	health := []string{http.MethodGet, http.MethodHead} // load balancers send either
	e.Match(health, "/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.Match(health, "/readyz", s.readyz)
	guard := echo.WrapMiddleware(s.admin)
	if h.Metrics != nil {
		s.inside.GET(metricsPath, echo.WrapHandler(h.Metrics), guard)
	}
	if h.Admin != nil {
		s.inside.Any("/rebound/*", echo.WrapHandler(h.Admin), s.watchBody, guard)
		s.inside.GET("/", func(c echo.Context) error {
			if !strings.Contains(first(c.Request().Header, "Accept"), "text/html") {
				return echo.ErrNotFound
			}
			return c.Redirect(http.StatusFound, pagePath) // a person in a browser
		})
		s.inside.GET("/rebound", func(c echo.Context) error { return c.Redirect(http.StatusFound, pagePath) })
	}
	return s
}

// newEcho makes a router without routes.
func (s *Server) newEcho(lim LimitsConfig) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.onError
	e.IPExtractor = echo.ExtractIPDirect() // headers that clients set are not trusted
	e.StdLogger = slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)
	e.Use(s.count, s.watchWrites, s.recoverPanics, s.filter)
	configure(e.Server, lim)
	return e
}

// stripPrefix removes the prefix from the path of every request. Other paths get 404.
func stripPrefix(prefix string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if prefix == "" {
			return next
		}
		return func(c echo.Context) error {
			u := c.Request().URL
			rest, ok := strings.CutPrefix(u.Path, prefix)
			if !ok || rest == "" || rest[0] != '/' {
				return failf(http.StatusNotFound, "unknown_path", "Not found.")
			}
			u.Path, u.RawPath = rest, strings.TrimPrefix(u.RawPath, prefix)
			return next(c)
		}
	}
}

// configure sets what net/http's server keeps until it stops: a reload does not change it. It sets no
// time limits for whole bodies and answers, because uploads and watchWrites limit the time without
// progress instead.
func configure(h *http.Server, lim LimitsConfig) {
	h.ReadHeaderTimeout, h.IdleTimeout, h.MaxHeaderBytes = lim.HeadTimeout, lim.IdleTimeout, lim.Headers
	h.DisableGeneralOptionsHandler = true
	h.Protocols = new(http.Protocols)
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetHTTP2(true)
	h.Protocols.SetUnencryptedHTTP2(true) // with prior knowledge, as proxies do
	h.HTTP2 = &http.HTTP2Config{WriteByteTimeout: lim.WriteStall}
}

// count counts active requests, and refuses new ones while draining.
//
// After a handler, net/http reads the rest of its request body so that the connection can serve the
// next request. The deadline here limits that to limits.body_timeout.
func (s *Server) count(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		s.active.Add(1)
		defer s.active.Add(-1)
		if c.Request().ContentLength != 0 {
			limit := s.core.Load().Config.Limits.BodyTimeout
			conn := http.NewResponseController(c.Response())
			defer func() { _ = conn.SetReadDeadline(time.Now().Add(limit)) }() // not every connection has one
		}
		if s.draining.Load() && c.Path() != "/healthz" && c.Path() != metricsPath { // it is alive, and still counts
			return stopping()
		}
		return next(c)
	}
}

// stopping is the error for requests that arrive during shutdown.
func stopping() *Error {
	e := reported(http.StatusServiceUnavailable, "draining", "This gateway is stopping. Try again.")
	e.Header = http.Header{"Connection": {"close"}, "Retry-After": {"1"}}
	return e
}

// recoverPanics turns a panic into an error for the client, or into a broken connection if the answer
// has begun.
func (s *Server) recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p != http.ErrAbortHandler {
				s.log.Error("a handler panicked", "panic", p, "stack", string(debug.Stack()))
			}
			if p == http.ErrAbortHandler || c.Response().Committed {
				panic(http.ErrAbortHandler)
			}
			err = failf(http.StatusInternalServerError, "internal", "An internal error occurred; the gateway's log has the details.")
		}()
		return next(c)
	}
}

// Swap replaces the core. Active requests keep the old one; a new certificate applies to new
// connections.
func (s *Server) Swap(core *Core) {
	if cert := core.Config.TLS.Certificate; cert != nil {
		s.cert.Store(cert)
	}
	core.prepare()
	s.places.keys.Store(int64(len(core.Config.Auth.Keys)))
	s.memory.keys.Store(int64(len(core.Config.Auth.Keys)))
	s.core.Store(core)
}

// Serve accepts clients' connections until Shutdown, with TLS if there is a certificate.
func (s *Server) Serve(l net.Listener) error { return s.serve(s.echo, l) }

// ServeAdmin accepts connections to /rebound/ and /metrics until Shutdown, if these have an address of
// their own.
func (s *Server) ServeAdmin(l net.Listener) error { return s.serve(s.inside, l) }

func (s *Server) serve(e *echo.Echo, l net.Listener) error {
	e.Listener = l
	if s.cert.Load() != nil {
		conf := &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil },
		}
		e.Server.TLSConfig, e.TLSListener = conf, tls.NewListener(l, conf)
	}
	return e.StartServer(e.Server)
}

// Shutdown refuses new requests and waits until active ones are answered, or ctx ends; then it closes
// all connections. The listener stays open meanwhile, so that new clients get an error. It does not
// wait for requests that are still being uploaded.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.uploads.stop()
	s.idle(ctx)
	bounded, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := ctx.Err(); err != nil {
		_, _ = s.echo.Close(), s.inside.Close()
		s.idle(bounded) // requests that were cut still report their end
		return err
	}
	// The last bytes of answers may still be in transit. Connections without a complete request head
	// get a second at most.
	for _, e := range []*echo.Echo{s.echo, s.inside} {
		if e.Shutdown(bounded) != nil {
			_ = e.Close()
		}
	}
	return nil
}

// idle waits until no request is active, or ctx ends.
func (s *Server) idle(ctx context.Context) {
	for s.active.Load() > 0 && recovery.Wait(ctx, 10*time.Millisecond) {
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

// noWebSocket answers a client that tries WebSocket first: after 426 it falls back to POST at once,
// after 404 only after seven tries.
func (s *Server) noWebSocket(c echo.Context) error {
	if !strings.EqualFold(c.Request().Header.Get("Upgrade"), "websocket") {
		return s.pass(c)
	}
	return failf(http.StatusUpgradeRequired, "no_websocket", "WebSocket is not served here; use POST.")
}

// requestHeader is the response header with the request's id in events and on the page.
const requestHeader = "X-Rebound-Request"

// requestID returns a new id for logs and events. It is not a secret.
func requestID() string {
	const prefix = "req_"
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], rand.Uint64())
	var b [len(prefix) + 16]byte
	return string(hex.AppendEncode(append(b[:0], prefix...), n[:]))
}
