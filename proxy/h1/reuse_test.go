package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rebound-llm/rebound/proxy/h1"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// blind dials connections that cannot be looked at before they are used again,
// as if the server closed them right after the look.
func blind(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return struct{ net.Conn }{c}, err
}

// TestStale: the server closes connections while they are idle.
func TestStale(t *testing.T) {
	// The first connection serves one request and then acts as told; all later ones serve.
	for name, end := range map[string]func(net.Conn, *bufio.Reader){
		"closed":            func(c net.Conn, br *bufio.Reader) {},
		"reset":             func(c net.Conn, br *bufio.Reader) { _ = c.(*net.TCPConn).SetLinger(0) },
		"closed on request": func(c net.Conn, br *bufio.Reader) { _, _ = br.Peek(1) },
		"closed in request": func(c net.Conn, br *bufio.Reader) { _, _ = br.Discard(20) },
	} {
		for _, dial := range []string{"look", "blind"} {
			t.Run(name+" "+dial, func(t *testing.T) {
				ended := make(chan struct{})
				p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
					if n > 1 {
						always(okAnswer)(n, c, br)
						return
					}
					once(okAnswer)(n, c, br)
					if strings.HasPrefix(name, "closed ") {
						close(ended)
						end(c, br)
						return
					}
					end(c, br)
					_ = c.Close()
					close(ended)
				})
				cfg := h1.Config{}
				if dial == "blind" {
					cfg.DialContext = blind
				}
				tr := newTransport(t, cfg)
				get(t, tr, p.url)
				<-ended
				method := "PUT"
				if dial == "look" && !strings.HasPrefix(name, "closed ") {
					method = "POST" // seen before it is written: nothing is sent twice
				}
				resp, err := tr.RoundTrip(request(t, t.Context(), method, p.url, "body"))
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
					t.Fatalf("%q %v", b, err)
				}
				if n := p.conns.Load(); n != 2 {
					t.Errorf("%d connections", n)
				}
			})
		}
	}
}

// dying is a connection whose peer may die without a word.
type dying struct {
	net.Conn
	dead *atomic.Bool
}

func (c dying) Read(p []byte) (int, error) {
	if c.dead.Load() {
		return 0, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	}
	return c.Conn.Read(p)
}

func (c dying) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return len(p), nil // it is on its way for ever
	}
	return c.Conn.Write(p)
}

// TestDeadPeer: of a request on a kept connection whose peer has died nothing was received. It is
// made again on a new one, whatever its method, and no other kept connection is tried.
func TestDeadPeer(t *testing.T) {
	for _, body := range []any{"body", make([]byte, 1<<20)} {
		p := listen(t, always(okAnswer))
		var dead *atomic.Bool
		tr := newTransport(t, h1.Config{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return dying{c, dead}, err
		}})
		dead = new(atomic.Bool)
		first, err := tr.RoundTrip(request(t, t.Context(), "GET", p.url, nil))
		if err != nil {
			t.Fatal(err)
		}
		get(t, tr, p.url) // a second connection, beside the first
		if _, err := io.ReadAll(first.Body); err != nil {
			t.Fatal(err)
		}
		if n := tr.IdleConns(); n != 2 {
			t.Fatalf("%d idle connections", n)
		}
		dead.Store(true)
		dead = new(atomic.Bool) // of connections from now on
		resp, err := tr.RoundTrip(request(t, t.Context(), "POST", p.url, body))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
			t.Errorf("%q %v", b, err)
		}
		if conns, idle := p.conns.Load(), tr.IdleConns(); conns != 3 || idle != 1 {
			t.Errorf("%d connections were made, %d are kept", conns, idle)
		}
	}
}

// TestRetryOnlyOnce: and never on a new connection, nor after a byte, nor
// without a body to send again, nor a POST that was written whole: it may have
// arrived, and may be paid for.
func TestRetryOnlyOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		method string
		reuse  bool
		last   string // what the server says before it closes
		body   any
		conns  int32
	}{
		{"new connection", "PUT", false, "", "body", 1},
		{"reused, then new", "PUT", true, "", "body", 2},
		{"reused, large", "PUT", true, "", make([]byte, 1<<20), 2},
		{"reused, written", "POST", true, "", "body", 1},
		{"reused, a byte came", "PUT", true, "H", "body", 1},
		{"reused, body is gone", "PUT", true, "", io.MultiReader(strings.NewReader("body")), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
				if n == 1 && tt.reuse {
					if readRequest(br) != nil {
						return
					}
					_, _ = io.WriteString(c, okAnswer)
				}
				if readRequest(br) == nil {
					requests.Add(1)
				}
				_, _ = io.WriteString(c, tt.last)
			})
			tr := newTransport(t, h1.Config{})
			if tt.reuse {
				get(t, tr, p.url)
			}
			_, err := tr.RoundTrip(request(t, t.Context(), tt.method, p.url, tt.body))
			var before *h1.BeforeResponseError
			if errors.As(err, &before) != (tt.last == "") || !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%T %v", err, err)
			}
			if n := p.conns.Load(); n != tt.conns {
				t.Errorf("%d connections, want %d", n, tt.conns)
			}
			if n := requests.Load(); n != tt.conns {
				t.Errorf("%d requests, want %d", n, tt.conns)
			}
		})
	}
}

func TestRetrySendsTheSameBody(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 64 << 10, 64<<10 + 1, 1 << 20} {
		for _, announced := range []bool{true, false} {
			want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			got := make(chan []byte, 9)
			p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
				for i := 0; ; i++ {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					b, err := io.ReadAll(req.Body)
					if err != nil {
						return
					}
					if i > 0 || n > 1 {
						got <- b
					}
					if n == 1 && i == 1 {
						return
					}
					_, _ = io.WriteString(c, okAnswer)
				}
			})
			tr := newTransport(t, h1.Config{})
			get(t, tr, p.url)
			req := request(t, t.Context(), "PUT", p.url, nil)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(want)), nil }
			req.Body, _ = req.GetBody()
			if announced {
				req.ContentLength = int64(size)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(size, announced, err)
			}
			_, _ = io.ReadAll(resp.Body)
			for i := range 2 {
				if b := <-got; !bytes.Equal(b, want) {
					t.Errorf("%d %v: attempt %d sent %d bytes", size, announced, i+1, len(b))
				}
			}
		}
	}
}

// TestUnasked: a server says something while its connection is idle, or more than
// was asked for. No request gets that for an answer, and no connection to a server
// that does so is used twice any more, unless it only said good-bye.
func TestUnasked(t *testing.T) {
	for name, tt := range map[string]struct {
		late  bool   // after the answer was read
		more  string // what it says then
		conns int32  // for four requests
	}{
		"second answer at once": {false, okAnswer, 4},
		"second answer, later":  {true, okAnswer, 4},
		"some bytes":            {true, "x", 4},
		"good-bye":              {true, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", 2},
		"old good-bye":          {true, "HTTP/1.0 408 Request Time-out\r\n\r\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan struct{})
			p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
				for readRequest(br) == nil {
					switch {
					case n > 1:
						_, _ = io.WriteString(c, okAnswer)
					case tt.late:
						_, _ = io.WriteString(c, okAnswer)
						<-said
						_, _ = io.WriteString(c, tt.more)
						said <- struct{}{}
					default:
						_, _ = io.WriteString(c, okAnswer+tt.more)
					}
				}
			})
			tr := newTransport(t, h1.Config{})
			for i := range 4 {
				if resp, body := get(t, tr, p.url); resp.StatusCode != 200 || body != "ok" {
					t.Errorf("%d %q", resp.StatusCode, body)
				}
				if i == 0 && tt.late {
					said <- struct{}{}
					<-said
				}
			}
			if n := p.conns.Load(); n != tt.conns {
				t.Errorf("%d connections, want %d", n, tt.conns)
			}
		})
	}
}

func TestPoolLimits(t *testing.T) {
	p := listen(t, always(okAnswer))
	for limit, idle := range map[int]int{2: 2, 0: 5, -1: 0} {
		tr := newTransport(t, h1.Config{MaxIdlePerHost: limit})
		var open []*http.Response
		for range 5 {
			resp, err := tr.RoundTrip(request(t, t.Context(), "GET", p.url, nil))
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, resp)
		}
		for _, resp := range open {
			_, _ = io.ReadAll(resp.Body)
		}
		if n := tr.IdleConns(); n != idle {
			t.Errorf("limit %d: %d idle", limit, n)
		}
		tr.CloseIdleConnections()
		p.gone(t)
	}
}

// TestCloseIdleWithOneInUse: as a reload does.
func TestCloseIdleWithOneInUse(t *testing.T) {
	p := listen(t, always(okAnswer))
	tr := newTransport(t, h1.Config{})
	resp, err := tr.RoundTrip(request(t, t.Context(), "GET", p.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	tr.CloseIdleConnections()
	if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	p.gone(t)
	get(t, tr, p.url)
	if tr.IdleConns() != 1 {
		t.Error("not kept after the next request")
	}
}

// TestReset: the cause of a failure can be found in every phase.
func TestReset(t *testing.T) {
	for said, want := range map[string]any{
		"":                    new(*h1.BeforeResponseError),
		"HTTP/1.1 200 OK\r\n": new(*h1.HeaderError),
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nh": new(*h1.BodyError),
		"HTTP/1.1 200 OK\r\n\r\nhello":                  new(*h1.BodyError), // not its end
	} {
		p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
			_ = readRequest(br)
			_, _ = io.WriteString(c, said)
			_ = c.(*net.TCPConn).SetLinger(0)
		})
		resp, err := newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if !errors.As(err, want) || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after %q: %T %v", said, err, err)
		}
	}
}
