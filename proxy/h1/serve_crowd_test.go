package h1_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestManyAtOnce: connections do not mix, and none leaves anything.
func TestManyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(w, r.URL.Path)
			if len(b)%2 == 0 {
				w.(http.Flusher).Flush()
			}
			_, _ = w.Write(b)
		})
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				c, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(2 * patience))
				br := bufio.NewReader(c)
				for j := range 10 {
					body := strings.Repeat(fmt.Sprintf("%d-%d ", i, j), 1+100*((i+j)%20))
					fmt.Fprintf(c, "POST /%d/%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", i, j, len(body), body)
					if a, err := readAnswer(br, "POST"); err != nil || a.bodyErr != nil || a.body != fmt.Sprintf("/%d/%d%s", i, j, body) {
						t.Errorf("%d %d: %.100q %v %v", i, j, a.body, err, a.bodyErr)
						return
					}
				}
				if i%3 == 0 {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
			})
		}
		wg.Wait()
	})
}

// TestComeAndGo: clients that end in the middle of anything; the server lives,
// says nothing of it in its log, and nothing is left.
func TestComeAndGo(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		var log records
		s := serveWith(t, k, h1.ServerConfig{Log: log.logger(), Handler: http.HandlerFunc(echo)})
		ask := "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n"
		for i := range len(ask) + 1 {
			for _, leave := range []func(*wire){(*wire).drop, func(w *wire) { _ = w.TCPConn.Close() }} {
				w := s.connect(t)
				w.say(ask[:i])
				leave(w)
			}
		}
		w := s.connect(t)
		w.works()
		_ = w.TCPConn.Close()
		if log.String() != "" {
			t.Error(log.String())
		}
	})
}

// TestEndlessRequests: what never ends is ended, and the client can read why
// although it is still talking.
func TestEndlessRequests(t *testing.T) {
	for _, tt := range []struct{ name, begin, more string }{
		{"target", "GET /", "aaaaaaaaaaaaaaaa"},
		{"name", "GET / HTTP/1.1\r\n", "aaaaaaaaaaaaaaaa"},
		{"value", "GET / HTTP/1.1\r\nX:", " aaaaaaaaaaaaaaaa"},
		{"headers", "GET / HTTP/1.1\r\nHost: a\r\n", "X: aaaaaaaa\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serveWith(t, ours(), h1.ServerConfig{Handler: http.HandlerFunc(echo), MaxHeaderBytes: 32 << 10})
			w := s.connect(t)
			refused := make(chan error, 1)
			go func() {
				w.say(tt.begin)
				block := strings.Repeat(tt.more, 1000)
				for {
					if _, err := io.WriteString(w.TCPConn, block); err != nil {
						refused <- err
						return
					}
				}
			}()
			if a := w.hear("GET"); a.StatusCode != 431 || !a.Close {
				t.Errorf("%d %v", a.StatusCode, a.Header)
			}
			if err := comes(t, "the server hears no more", refused); isTimeout(err) {
				t.Error(err)
			}
		})
	}
}
