package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// patience is what may pass before something that must happen counts as never
// happening: far more than a busy machine needs.
const patience = 20 * time.Second

// serving is what net/http's server and ours have in common.
type serving interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// kind is a server under test.
type kind struct {
	name string
	ours bool
	make func(h1.ServerConfig) serving
}

// kinds are the server that defines what is right, and ours.
func kinds() []kind {
	return []kind{
		{name: "std", make: func(c h1.ServerConfig) serving {
			if c.Log == nil {
				c.Log = slog.New(slog.DiscardHandler)
			}
			return &http.Server{Handler: c.Handler, DisableGeneralOptionsHandler: true, ReadHeaderTimeout: c.HeadTimeout, IdleTimeout: c.IdleTimeout,
				WriteTimeout: c.WriteTimeout, MaxHeaderBytes: c.MaxHeaderBytes, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelError)}
		}},
		ours(),
	}
}

func ours() kind {
	return kind{name: "h1", ours: true, make: func(c h1.ServerConfig) serving {
		if c.Log == nil {
			c.Log = slog.New(slog.DiscardHandler)
		}
		return h1.NewServer(c)
	}}
}

// both runs a test for each server.
func both(t *testing.T, f func(t *testing.T, k kind)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	}
}

// site is a running server.
type site struct {
	serving
	gate *gate
	addr string
	done chan error // what Serve returned
}

// gate is a listener that counts its connections, and cuts what they read.
type gate struct {
	net.Listener
	conns atomic.Int32           // accepted so far
	cut   atomic.Pointer[[]byte] // one less than what each Read of the next connections returns at most, in turn
}

func (g *gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.conns.Add(1)
	if sizes := g.cut.Load(); sizes != nil && len(*sizes) > 0 {
		return &cutConn{TCPConn: c.(*net.TCPConn), sizes: *sizes}, nil
	}
	return c, nil
}

// cutConn is a connection that delivers little at a time.
type cutConn struct {
	*net.TCPConn
	sizes []byte
	reads atomic.Int32
}

func (c *cutConn) Read(b []byte) (int, error) {
	n := int(c.sizes[int(c.reads.Add(1))%len(c.sizes)]) + 1
	return c.TCPConn.Read(b[:min(len(b), n)])
}

// serve starts a server on loopback, which must leave nothing behind at the
// test's end. Who makes connections to it ends them before that.
func serve(t testing.TB, k kind, h http.HandlerFunc) *site {
	return serveWith(t, k, h1.ServerConfig{Handler: h})
}

func serveWith(t testing.TB, k kind, cfg h1.ServerConfig) *site {
	t.Helper()
	noGoroutineLeft(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{serving: k.make(cfg), gate: &gate{Listener: ln}, addr: ln.Addr().String(), done: make(chan error, 1)}
	go func() { s.done <- s.Serve(s.gate) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
		select {
		case err := <-s.done:
			if err != http.ErrServerClosed {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve did not return")
		}
	})
	return s
}

// noGoroutineLeft checks at the test's end that what runs now is all that runs then.
func noGoroutineLeft(t testing.TB) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		var err error
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if err = goleak.Find(before); err == nil {
				return
			}
		}
		t.Error(err)
	})
}

// wire is a client that says what a test wants, byte by byte.
type wire struct {
	*net.TCPConn
	t  testing.TB
	br *bufio.Reader
}

// connect opens a connection, which is closed at the test's end.
func (s *site) connect(t testing.TB) *wire {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	return &wire{c.(*net.TCPConn), t, bufio.NewReader(c)}
}

// say sends bytes. The server may have closed by then: its answer tells.
func (w *wire) say(s string) {
	_, _ = io.WriteString(w.TCPConn, s)
}

// answer is a response, read to its end.
type answer struct {
	*http.Response
	body    string
	bodyErr error
}

// hear reads the next answer, to a request with this method.
func (w *wire) hear(method string) answer {
	w.t.Helper()
	a, err := readAnswer(w.br, method)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	return a
}

// readAnswer skips informational responses.
func readAnswer(br *bufio.Reader, method string) (a answer, err error) {
	for {
		a.Response, err = http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			return a, err
		}
		if a.StatusCode >= 200 || a.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	b, err := io.ReadAll(a.Body)
	a.body, a.bodyErr = string(b), err
	return a, nil
}

// ended checks that the server closes without another word.
func (w *wire) ended() {
	w.t.Helper()
	b, err := io.ReadAll(w.br)
	if len(b) > 0 {
		w.t.Errorf("said more: %.300q", b)
	}
	if isTimeout(err) {
		w.t.Error("the server did not close")
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// works checks that the connection can be used for another request; the
// handler has to be an echo.
func (w *wire) works() {
	w.t.Helper()
	w.say("GET /again HTTP/1.1\r\nHost: again\r\n\r\n")
	a, err := readAnswer(w.br, "GET")
	if err != nil || a.StatusCode != 200 || !strings.HasPrefix(a.body, "GET /again ") {
		w.t.Errorf("not usable again: %v %q %v", a.Response, a.body, err)
	}
}

// drop ends the connection with a reset.
func (w *wire) drop() {
	_ = w.SetLinger(0)
	_ = w.TCPConn.Close()
}

// echo answers with all that a request was understood as. The first line is
// its method, its target and its body.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %q", r.Method, r.RequestURI, body)
	if err != nil {
		b.WriteString(" cut")
	}
	fmt.Fprintf(&b, "\nproto %s %d.%d\nhost %q\nlength %d %q\nclose %t\n", r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host, r.ContentLength, r.TransferEncoding, r.Close)
	fmt.Fprintf(&b, "url %s\n", plainURL(r.URL))
	for _, k := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %q\n", k, r.Header[k])
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain")
	h.Set("X-Method", r.Method)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b.Bytes())
}

func plainURL(u *url.URL) string {
	return fmt.Sprintf("%q %q %q %q %q %t %q %q", u.Scheme, u.Host, u.Path, u.RawPath, u.RawQuery, u.ForceQuery, u.Opaque, u.User.String())
}

// firstLine is what an echo says of its request.
func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

// records keeps what is logged.
type records struct {
	mu sync.Mutex
	b  strings.Builder
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// happens waits for something that other goroutines do.
func happens(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// comes waits for a channel.
func comes[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("did not happen: %s", what)
	}
	return v
}
