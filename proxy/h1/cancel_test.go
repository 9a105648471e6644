package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

var errLeft = errors.New("the client left")

// TestCancel ends a request in each of its phases, by cancelling and by a deadline.
func TestCancel(t *testing.T) {
	silent := func(_ int, c net.Conn, br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) }
	for _, tt := range []struct {
		name   string
		scheme string
		handle func(int, net.Conn, *bufio.Reader)
		hang   bool // in the dial
		body   any
		head   bool // a response begins
		dial   bool // the error is a DialError
	}{
		{name: "dial", hang: true, dial: true},
		{name: "handshake", scheme: "https", handle: silent, dial: true},
		{name: "head", handle: silent},
		{name: "half a head", handle: func(_ int, c net.Conn, br *bufio.Reader) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			_, _ = io.Copy(io.Discard, br)
		}},
		{name: "information", handle: func(_ int, c net.Conn, br *bufio.Reader) {
			_, _ = io.WriteString(c, "HTTP/1.1 102 Processing\r\n\r\n")
			_, _ = io.Copy(io.Discard, br)
		}},
		{name: "body", head: true, handle: func(_ int, c net.Conn, br *bufio.Reader) {
			_ = readRequest(br)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
			_, _ = io.Copy(io.Discard, br)
		}},
		{name: "body until close", head: true, handle: func(_ int, c net.Conn, br *bufio.Reader) {
			_ = readRequest(br)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nx")
			_, _ = io.Copy(io.Discard, br)
		}},
		{name: "upload", body: make([]byte, 16<<20), handle: func(_ int, c net.Conn, br *bufio.Reader) {
			for b := make([]byte, 1); ; { // not even the end is noticed soon
				if _, err := c.Read(b); err != nil {
					return
				}
				<-time.After(time.Millisecond)
			}
		}},
		{name: "upload that waits for its source", body: pipe, handle: silent},
	} {
		for _, by := range []string{"cancel", "deadline"} {
			t.Run(tt.name+" by "+by, func(t *testing.T) {
				if tt.handle == nil {
					tt.handle = silent
				}
				p := listen(t, tt.handle)
				cfg := h1.Config{}
				if tt.hang {
					cfg.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					}
				}
				tr := newTransport(t, cfg)
				url := p.url
				if tt.scheme != "" {
					url = tt.scheme + url[len("http"):]
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				want := errLeft
				if by == "deadline" {
					dctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer stop()
					ctx, want = dctx, context.DeadlineExceeded
				} else {
					time.AfterFunc(50*time.Millisecond, func() { cancel(errLeft) })
				}
				defer cancel(nil)
				body := tt.body
				if f, ok := body.(func(testing.TB) io.Reader); ok {
					body = f(t)
				}
				start := time.Now()
				resp, err := tr.RoundTrip(request(t, ctx, "POST", url, body))
				if tt.head {
					if err != nil {
						t.Fatal(err)
					}
					var b []byte
					b, err = io.ReadAll(resp.Body)
					if string(b) != "x" {
						t.Errorf("%q", b)
					}
					_ = resp.Body.Close()
				}
				if d := time.Since(start); d > soon {
					t.Errorf("took %v", d)
				}
				var dial *h1.DialError
				if !errors.Is(err, want) || errors.As(err, &dial) != tt.dial || !tt.dial && err != want {
					t.Errorf("%T %v", err, err)
				}
				if tr.IdleConns() != 0 {
					t.Error("a cancelled connection went to the pool")
				}
				if tt.name != "upload" {
					p.gone(t)
				}
			})
		}
	}
}

func pipe(t testing.TB) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}

// TestCancelAfterEnd: the context of a finished request has no power over its connection.
func TestCancelAfterEnd(t *testing.T) {
	p := listen(t, always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	tr := newTransport(t, h1.Config{})
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(request(t, ctx, "GET", p.url, nil))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "ok" || err != nil {
			t.Fatalf("%q %v", b, err)
		}
		cancel()
		_ = resp.Body.Close()
	}
	if n := p.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	_, err := newTransport(t, h1.Config{}).RoundTrip(request(t, ctx, "GET", "http://127.0.0.1:1", nil))
	var dial *h1.DialError
	if !errors.As(err, &dial) || !errors.Is(err, errLeft) {
		t.Errorf("%T %v", err, err)
	}
}

// TestCloseWhileReading: another goroutine may give up a body that stalls.
func TestCloseWhileReading(t *testing.T) {
	p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
		_ = readRequest(br)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nh")
		_, _ = io.Copy(io.Discard, br)
	})
	resp, err := newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = resp.Body.Close() })
	within(t, soon, func() {
		if b, err := io.ReadAll(resp.Body); string(b) != "h" || err == nil {
			t.Errorf("%q %v", b, err)
		}
	})
	p.gone(t)
}

func TestDialFailures(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	var dial *h1.DialError
	_, err = newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", "http://"+ln.Addr().String(), nil))
	if !errors.As(err, &dial) || dial.Addr != ln.Addr().String() {
		t.Errorf("refused: %T %v", err, err)
	}
	hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err = newTransport(t, h1.Config{DialContext: hang, DialTimeout: 10 * time.Millisecond}).RoundTrip(request(t, t.Context(), "GET", "http://example.com", nil))
	if !errors.As(err, &dial) || !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || dial.Addr != "example.com:80" {
		t.Errorf("too slow: %T %v", err, err)
	}
	p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) { _, _ = io.Copy(io.Discard, br) })
	_, err = newTransport(t, h1.Config{TLSHandshakeTimeout: 10 * time.Millisecond}).RoundTrip(request(t, t.Context(), "GET", "https"+p.url[4:], nil))
	if !errors.As(err, &dial) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("no handshake: %T %v", err, err)
	}
	p.gone(t)
}

// TestWriteTimeout: a server that reads nothing and says nothing.
func TestWriteTimeout(t *testing.T) {
	for name, body := range map[string]any{"memory": make([]byte, 16<<20), "stream": io.LimitReader(zeros{}, 16<<20)} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			p := listen(t, func(int, net.Conn, *bufio.Reader) { <-release })
			defer close(release)
			tr := newTransport(t, h1.Config{WriteTimeout: 50 * time.Millisecond})
			start := time.Now()
			_, err := tr.RoundTrip(request(t, t.Context(), "POST", p.url, body))
			var before *h1.BeforeResponseError
			if !errors.As(err, &before) || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > soon {
				t.Errorf("%T %v after %v", err, err, time.Since(start))
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestIdleTimeout runs in false time, over connections that are pipes.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		tr := h1.New(h1.Config{IdleTimeout: time.Minute, DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(0, server, bufio.NewReader(server))
				closed.Add(1)
			}()
			return client, nil
		}})
		open := func(n int) {
			var bodies []io.Closer
			var all []io.Reader
			for range n {
				resp, err := tr.RoundTrip(request(t, t.Context(), "GET", "http://a", nil))
				if err != nil {
					t.Fatal(err)
				}
				bodies, all = append(bodies, resp.Body), append(all, resp.Body)
			}
			for i := range all {
				if b, err := io.ReadAll(all[i]); err != nil || !bytes.Equal(b, []byte("ok")) {
					t.Fatal(err)
				}
				_ = bodies[i].Close()
			}
		}
		check := func(idle, gone int) {
			t.Helper()
			synctest.Wait()
			if tr.IdleConns() != idle || int(closed.Load()) != gone {
				t.Errorf("%d idle, %d closed; want %d, %d", tr.IdleConns(), closed.Load(), idle, gone)
			}
		}
		open(10)
		check(10, 0)
		time.Sleep(40 * time.Second)
		open(3) // the three on top are young again
		check(10, 0)
		time.Sleep(30 * time.Second)
		check(3, 7)
		time.Sleep(40 * time.Second)
		check(0, 10)
		open(2)
		check(2, 10)
		tr.CloseIdleConnections()
		check(0, 12)
		time.Sleep(time.Hour)
		open(1)
		check(1, 12)
		tr.CloseIdleConnections()
		check(0, 13)
	})
}
