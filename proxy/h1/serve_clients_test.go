package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestRealClients: net/http's client and ours, against both servers.
func TestRealClients(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	clients := map[string]func(t *testing.T) http.RoundTripper{
		"std": func(t *testing.T) http.RoundTripper {
			tr := &http.Transport{ExpectContinueTimeout: patience, MaxIdleConnsPerHost: 100}
			t.Cleanup(tr.CloseIdleConnections)
			return tr
		},
		"h1": func(t *testing.T) http.RoundTripper { return newTransport(t, h1.Config{}) },
	}
	for client, make := range clients {
		t.Run(client, func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case "/refuse":
						http.Error(w, "no", http.StatusForbidden)
					case "/stream":
						for i := range 5 {
							fmt.Fprintf(w, "data: %d\n\n", i)
							w.(http.Flusher).Flush()
						}
					case "/large":
						b, err := io.ReadAll(r.Body)
						if err != nil {
							t.Error(err)
						}
						_, _ = w.Write(b)
					default:
						echo(w, r)
					}
				})
				rt := make(t)
				ask := func(method, path string, body any, expect bool) string {
					req := request(t, t.Context(), method, "http://"+s.addr+path, body)
					if expect {
						req.Header.Set("Expect", "100-continue")
					}
					resp, err := rt.RoundTrip(req)
					if err != nil {
						t.Error(err)
						return ""
					}
					defer resp.Body.Close()
					b, err := io.ReadAll(resp.Body)
					if err != nil {
						t.Error(err)
					}
					return string(b)
				}
				for i := range 50 {
					if got := ask("POST", fmt.Sprintf("/%d", i), "hello", false); firstLine(got) != fmt.Sprintf("POST /%d %q", i, "hello") {
						t.Errorf("%q", got)
					}
					if got := ask("POST", "/chunks", io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo")), false); firstLine(got) != `POST /chunks "hello"` {
						t.Errorf("%q", got)
					}
					if got := ask("HEAD", "/", nil, false); got != "" {
						t.Errorf("%q", got)
					}
					if got := ask("GET", "/stream", nil, false); strings.Count(got, "data: ") != 5 {
						t.Errorf("%q", got)
					}
				}
				if got := ask("POST", "/large", large, false); got != string(large) {
					t.Errorf("%d bytes", len(got))
				}
				if n := s.gate.conns.Load(); n != 1 {
					t.Errorf("%d connections", n)
				}
				if client == "std" {
					if got := ask("POST", "/", "hello", true); firstLine(got) != `POST / "hello"` {
						t.Errorf("%q", got)
					}
					if got := ask("POST", "/refuse", large, true); got != "no\n" {
						t.Errorf("%q", got)
					}
				}
				var wg sync.WaitGroup
				for i := range 50 {
					wg.Go(func() {
						for j := range 20 {
							body := fmt.Sprintf("%d %d", i, j)
							if got := ask("POST", "/many", body, false); firstLine(got) != fmt.Sprintf("POST /many %q", body) {
								t.Errorf("%q", got)
							}
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// TestShutdownUnderLoad: while a server ends, every request is answered in
// whole or fails in whole.
func TestShutdownUnderLoad(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			_, _ = w.Write(b)
		})
		rt := &http.Transport{MaxIdleConnsPerHost: 100}
		defer rt.CloseIdleConnections()
		var answered, failed atomic.Int32
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for j := 0; ; j++ {
					select {
					case <-stop:
						return
					default:
					}
					body := strings.Repeat(fmt.Sprintf("%d %d,", i, j), 500)
					resp, err := rt.RoundTrip(request(t, context.Background(), "POST", "http://"+s.addr, body))
					if err != nil {
						failed.Add(1)
						time.Sleep(time.Millisecond)
						continue
					}
					if b, err := io.ReadAll(resp.Body); err != nil || string(b) != body {
						t.Errorf("%d bytes %v", len(b), err)
					}
					_ = resp.Body.Close()
					answered.Add(1)
				}
			})
		}
		happens(t, "it works", func() bool { return answered.Load() > 200 })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		happens(t, "it has ended", func() bool { return failed.Load() > 0 })
		close(stop)
		wg.Wait()
	})
}

// pipes is a listener of connections that are pipes, for false time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) connect() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// pipeWire is a client at a pipe.
type pipeWire struct {
	net.Conn
	br *bufio.Reader
}

func newPipeWire(c net.Conn) *pipeWire { return &pipeWire{c, bufio.NewReader(c)} }

func (w *pipeWire) say(s string) { _, _ = io.WriteString(w.Conn, s) }

func (w *pipeWire) works(t *testing.T) {
	t.Helper()
	w.say("GET /again HTTP/1.1\r\nHost: a\r\n\r\n")
	if a, err := readAnswer(w.br, "GET"); err != nil || a.StatusCode != 200 {
		t.Errorf("%v %v", a.Response, err)
	}
}

// TestTimes checks the time-outs in false time, to the second.
func TestTimes(t *testing.T) {
	inFalseTime := func(name string, f func(t *testing.T, c net.Conn), serve ...func(w http.ResponseWriter, r *http.Request)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := h1.ServerConfig{Handler: http.HandlerFunc(echo)}
				if len(serve) > 0 {
					cfg.Handler = http.HandlerFunc(serve[0])
				}
				if name == "never idle too long" {
					cfg.IdleTimeout = -1
				}
				s, p := h1.NewServer(cfg), newPipes()
				done := make(chan error, 1)
				go func() { done <- s.Serve(p) }()
				c := p.connect()
				f(t, c)
				_ = c.Close()
				_ = s.Close()
				if err := <-done; err != http.ErrServerClosed {
					t.Error(err)
				}
			})
		})
	}
	between := func(t *testing.T, since time.Time, from, to time.Duration) {
		t.Helper()
		if d := time.Since(since); d < from || d > to {
			t.Errorf("after %v, not between %v and %v", d, from, to)
		}
	}
	inFalseTime("idle", func(t *testing.T, c net.Conn) {
		start := time.Now()
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("%q %v", b, err)
		}
		between(t, start, 120*time.Second, 180*time.Second)
	})
	inFalseTime("never idle too long", func(t *testing.T, c net.Conn) {
		time.Sleep(1000 * time.Hour)
		w := newPipeWire(c)
		w.works(t)
	})
	inFalseTime("idle between requests", func(t *testing.T, c net.Conn) {
		w := newPipeWire(c)
		for range 10 { // just in time, each time
			time.Sleep(119 * time.Second)
			w.works(t)
		}
		start := time.Now()
		_, _ = io.ReadAll(w.br)
		between(t, start, 120*time.Second, 180*time.Second)
	})
	inFalseTime("head", func(t *testing.T, c net.Conn) {
		w := newPipeWire(c)
		time.Sleep(100 * time.Second) // idle
		start := time.Now()
		w.say("G")
		for _, b := range "ET / HTTP" { // a byte a second
			time.Sleep(time.Second)
			w.say(string(b))
		}
		if a, err := readAnswer(w.br, "GET"); err != nil || a.StatusCode != 408 {
			t.Errorf("%v %v", a.Response, err)
		}
		between(t, start, 10*time.Second, 10*time.Second)
	})
	inFalseTime("head in time", func(t *testing.T, c net.Conn) {
		w := newPipeWire(c)
		for range 3 {
			w.say("GET /again HTT")
			time.Sleep(9 * time.Second)
			w.say("P/1.1\r\nHost: a\r\n\r\n")
			if a, err := readAnswer(w.br, "GET"); err != nil || a.StatusCode != 200 {
				t.Fatalf("%v %v", a.Response, err)
			}
			time.Sleep(time.Second)
		}
	})
	inFalseTime("write", func(t *testing.T, c net.Conn) {
		newPipeWire(c).say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		time.Sleep(time.Hour)
	}, func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				between(t, start, 30*time.Second, 45*time.Second)
				if r.Context().Err() == nil {
					t.Error("the context goes on")
				}
				return
			}
		}
	})
	var written error
	inFalseTime("write that goes on", func(t *testing.T, c net.Conn) {
		w := newPipeWire(c)
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		n := 0
		for b := make([]byte, 16<<10); n < 4<<20; { // 256 KiB take 16 s
			time.Sleep(time.Second)
			m, err := io.ReadFull(c, b)
			if n += m; err != nil {
				break
			}
		}
		if n < 4<<20 {
			t.Errorf("%d bytes, %v", n, written)
		}
	}, func(w http.ResponseWriter, _ *http.Request) { _, written = w.Write(make([]byte, 4<<20)) })
	inFalseTime("a handler's own deadline", func(t *testing.T, c net.Conn) {
		w := newPipeWire(c)
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := readAnswer(w.br, "GET"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // it ends with the request
		w.works(t)
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/again" {
			echo(w, r)
			return
		}
		rc := http.NewResponseController(w)
		if err := errors.Join(rc.SetWriteDeadline(time.Now().Add(3*time.Second)), rc.SetReadDeadline(time.Now().Add(3*time.Second))); err != nil {
			t.Error(err)
		}
	})
}
