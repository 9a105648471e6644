package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestEarlyAnswer: the server answers before it has read the body, and then
// stops reading, closes, or reads on.
func TestEarlyAnswer(t *testing.T) {
	const answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge"
	for _, then := range []string{"stops", "closes", "resets", "reads on"} {
		for _, kind := range []string{"memory", "stream", "waiting", "chunked", "small"} {
			t.Run(then+" "+kind, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
					for {
						if l, err := br.ReadString('\n'); err != nil || l == "\r\n" {
							break
						}
					}
					_, _ = io.WriteString(c, answer)
					switch then {
					case "stops":
						<-release
					case "closes": // with unread data, which resets; the answer must survive that
						<-time.After(20 * time.Millisecond)
					case "resets":
						<-time.After(20 * time.Millisecond)
						_ = c.(*net.TCPConn).SetLinger(0)
					case "reads on":
						_, _ = io.Copy(io.Discard, br)
					}
				})
				const size = 10 << 20
				data := make([]byte, size)
				body := closeCounter{bytes.NewReader(data), make(chan struct{}, 1)}
				req := request(t, t.Context(), "POST", p.url, nil)
				req.ContentLength = size
				switch kind {
				case "memory":
					req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
				case "waiting":
					r, w := io.Pipe()
					go func() { _, _ = w.Write([]byte("begun")) }()
					body.Reader = r
					body.closed = make(chan struct{}, 1)
					req.Body = pipeBody{r, body.closed}
				case "chunked":
					req.ContentLength = -1
				case "small":
					data = data[:inline]
					body.Reader = bytes.NewReader(data)
					req.ContentLength = inline
					req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
				}
				if kind != "waiting" {
					req.Body = body
				}
				tr := newTransport(t, h1.Config{})
				start := time.Now()
				resp, err := tr.RoundTrip(req)
				if err != nil {
					reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
					if !reset || then != "resets" && then != "closes" { // a reset may overtake what we read
						t.Fatal(err)
					}
					<-body.closed
					if tr.IdleConns() != 0 {
						t.Error("the connection was kept")
					}
					return
				}
				b, err := io.ReadAll(resp.Body)
				if resp.StatusCode != 413 || string(b) != "large" || err != nil {
					t.Errorf("%d %q %v", resp.StatusCode, b, err)
				}
				_ = resp.Body.Close()
				if kind == "memory" { // it is ours again
					clear(data)
				}
				if d := time.Since(start); d > soon {
					t.Errorf("took %v", d)
				}
				<-body.closed
			})
		}
	}
}

const inline = 64 << 10

type pipeBody struct {
	*io.PipeReader
	closed chan struct{}
}

func (p pipeBody) Close() error {
	select {
	case p.closed <- struct{}{}:
	default:
	}
	return p.PipeReader.Close()
}

// TestAnswerWhileSending: a server may answer with a stream that depends on what is still being sent.
func TestAnswerWhileSending(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		b := make([]byte, 1)
		for {
			if _, err := r.Body.Read(b); err != nil {
				return
			}
			_, _ = w.Write(bytes.ToUpper(b))
			_ = rc.Flush()
		}
	}))
	defer srv.Close()
	tr := newTransport(t, h1.Config{})
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, "a") }()
	resp, err := tr.RoundTrip(request(t, t.Context(), "POST", srv.URL, r))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	for _, c := range "abc" {
		if c != 'a' {
			_, _ = io.WriteString(w, string(c))
		}
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != strings.ToUpper(string(c)) {
			t.Fatalf("%q %v", b, err)
		}
	}
	_ = w.Close()
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	if tr.IdleConns() != 1 {
		t.Error("the connection was not kept")
	}
}

// TestLargeBodies goes both ways and compares sums.
func TestLargeBodies(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/sized" {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		}
		_, _ = w.Write(b)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	tr := newTransport(t, h1.Config{TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	src := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{1, 4095, 4096, 4097, inline - 1, inline, inline + 1, 100 << 10, 1<<20 + 1, 8 << 20} {
		data := make([]byte, size)
		_, _ = src.Read(data)
		for _, base := range []string{plain.URL, secure.URL} {
			for _, path := range []string{"/sized", "/chunked"} {
				for kind, body := range map[string]any{"memory": data, "stream": io.MultiReader(bytes.NewReader(data))} {
					req := request(t, t.Context(), "POST", base+path, body)
					if kind == "stream" && path == "/sized" {
						req.ContentLength = int64(size)
					}
					resp, err := tr.RoundTrip(req)
					if err != nil {
						t.Fatal(size, base, path, kind, err)
					}
					b, err := io.ReadAll(resp.Body)
					if err != nil || sha256.Sum256(b) != sha256.Sum256(data) {
						t.Fatal(size, base, path, kind, len(b), err)
					}
					_ = resp.Body.Close()
				}
			}
		}
	}
	if n := tr.IdleConns(); n != 2 {
		t.Errorf("%d connections for two servers and one request at a time", n)
	}
}

// TestManyWithCancels makes requests of all kinds in parallel, of which some
// are given up at random, and looks for answers of others, connections and
// goroutines (see TestMain) that stay.
func TestManyWithCancels(t *testing.T) {
	var open atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("X-Id", r.Header.Get("X-Id"))
		if r.URL.Path == "/slow" {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			<-time.After(time.Duration(rand.N(3)) * time.Millisecond)
		}
		_, _ = w.Write(b)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	srv.Start()
	defer srv.Close()
	// A busy machine may take its time with a thousand connections at once.
	tr := newTransport(t, h1.Config{DialTimeout: 5 * time.Minute})
	var wg sync.WaitGroup
	var done, cancelled atomic.Int32
	slots := make(chan struct{}, 1000)
	for id := range 3000 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if id%3 == 0 {
				time.AfterFunc(time.Duration(rand.N(4000))*time.Microsecond, func() { cancel(errLeft) })
			}
			size := []int{0, 100, 10 << 10, 100 << 10}[rand.N(4)]
			data := bytes.Repeat([]byte(fmt.Sprintf("%08d", id)), size/8)
			var body any = data
			if rand.N(2) == 0 {
				body = io.MultiReader(bytes.NewReader(data))
			}
			req := request(t, ctx, "POST", srv.URL+[]string{"/fast", "/slow"}[rand.N(2)], body)
			req.Header.Set("X-Id", fmt.Sprint(id))
			resp, err := tr.RoundTrip(req)
			var b []byte
			if err == nil {
				if got := resp.Header.Get("X-Id"); got != fmt.Sprint(id) {
					t.Errorf("request %d got the answer of %s", id, got)
				}
				if rand.N(10) > 0 {
					b, err = io.ReadAll(resp.Body)
				} else {
					b = data
				}
				_ = resp.Body.Close()
			}
			switch {
			case err == nil && bytes.Equal(b, data):
				done.Add(1)
			case errors.Is(err, errLeft):
				cancelled.Add(1)
			default:
				t.Errorf("request %d: %d of %d bytes, %v", id, len(b), len(data), err)
			}
			clear(data) // the caller's memory again
		})
	}
	wg.Wait()
	t.Logf("%d done, %d cancelled, %d idle", done.Load(), cancelled.Load(), tr.IdleConns())
	if done.Load() == 0 || cancelled.Load() == 0 {
		t.Error("nothing was tried")
	}
	eventually(t, "only idle connections are open", func() bool { return int(open.Load()) == tr.IdleConns() })
	tr.CloseIdleConnections()
	eventually(t, "all connections are closed", func() bool { return open.Load() == 0 })
}
