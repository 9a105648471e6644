package h1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestSlowHead: a head that was begun has to be complete in time, however
// diligently the client goes on with it.
func TestSlowHead(t *testing.T) {
	for _, tt := range []struct{ name, begin, more string }{
		{"one byte", "G", ""},
		{"half a line", "GET / HT", ""},
		{"no end", "GET / HTTP/1.1\r\nHost: a\r\n", ""},
		{"headers without an end", "GET / HTTP/1.1\r\nHost: a\r\n", "X: a\r\n"},
		{"a line without an end", "GET / HTTP/1.1\r\nHost: a\r\nX: ", "a"},
		{"after a good one", "GET /again HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serveWith(t, ours(), h1.ServerConfig{HeadTimeout: 100 * time.Millisecond, Handler: http.HandlerFunc(echo)})
			w := s.connect(t)
			w.say(tt.begin)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for tt.more != "" {
					select {
					case <-stop:
						return
					case <-time.After(5 * time.Millisecond):
						w.say(tt.more)
					}
				}
			})
			defer wg.Wait()
			defer close(stop)
			if strings.HasPrefix(tt.name, "after") {
				w.hear("GET")
			}
			if a := w.hear("GET"); a.StatusCode != 408 || !a.Close || a.bodyErr != nil {
				t.Errorf("%d %v %v", a.StatusCode, a.Header, a.bodyErr)
			}
			w.ended()
		})
	}
}

// TestIdleIsClosedSilently: also a connection on which nothing was ever said.
func TestIdleIsClosedSilently(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serveWith(t, k, h1.ServerConfig{HeadTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond, Handler: http.HandlerFunc(echo)})
		s.connect(t).ended()
		w := s.connect(t)
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		w.hear("GET")
		w.ended()
	})
}

// TestHandlerMayTakeItsTime: neither time-out is about the handler or the body.
func TestHandlerMayTakeItsTime(t *testing.T) {
	s := serveWith(t, ours(), h1.ServerConfig{HeadTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			time.Sleep(400 * time.Millisecond)
			if err != nil || r.Context().Err() != nil {
				t.Errorf("%v %v", err, r.Context().Err())
			}
			_, _ = w.Write(b)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(400 * time.Millisecond)
			_, _ = w.Write(b)
		})})
	w := s.connect(t)
	w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
	time.Sleep(400 * time.Millisecond)
	w.say("llo")
	if a := w.hear("POST"); a.body != "hellohello" || a.bodyErr != nil {
		t.Errorf("%q %v", a.body, a.bodyErr)
	}
}

// TestClientReadsNothing: the write time-out ends an answer that nobody takes.
func TestClientReadsNothing(t *testing.T) {
	for _, flush := range []bool{false, true} {
		t.Run(fmt.Sprint(flush), func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				ended := make(chan error, 1)
				s := serveWith(t, k, h1.ServerConfig{WriteTimeout: 200 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b := make([]byte, 100_000)
					for {
						if _, err := w.Write(b); err != nil {
							ended <- err
							return
						}
						if flush {
							w.(http.Flusher).Flush()
						}
					}
				})})
				w := s.connect(t)
				w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				if err := comes(t, "the handler's write fails", ended); !isTimeout(err) {
					t.Errorf("%T %v", err, err)
				}
			}) // and no goroutine is left
		})
	}
}

// TestClientReadsNoAnswers: pipelined requests whose answers nobody reads.
func TestClientReadsNoAnswers(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	both(t, func(t *testing.T, k kind) {
		s := serveWith(t, k, h1.ServerConfig{WriteTimeout: 200 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, large)
		})})
		w := s.connect(t)
		refused := make(chan error, 1)
		go func() {
			_, err := io.WriteString(w.TCPConn, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1_000_000))
			refused <- err
		}()
		if err := comes(t, "the connection ends", refused); err == nil || isTimeout(err) {
			t.Errorf("%v", err)
		}
	})
}

// TestClientLeaves: a handler is told soon by its context, whatever it is doing.
func TestClientLeaves(t *testing.T) {
	leave := map[string]func(*wire){"closes": func(w *wire) { _ = w.TCPConn.Close() }, "resets": (*wire).drop}
	for _, tt := range []struct {
		name, ask string
		do        func(w http.ResponseWriter, r *http.Request)
	}{
		{"no body", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(http.ResponseWriter, *http.Request) {}},
		{"body read", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }},
		{"chunks read", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }},
		{"streaming", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}},
		{"streaming, body not read", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
		}},
		{"second request", "GET /again HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", func(http.ResponseWriter, *http.Request) {}},
	} {
		for how, leave := range leave {
			t.Run(tt.name+"/"+how, func(t *testing.T) {
				both(t, func(t *testing.T, k kind) {
					begun, told := make(chan struct{}), make(chan error, 1)
					s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/again" {
							echo(w, r)
							return
						}
						tt.do(w, r)
						if err := r.Context().Err(); err != nil {
							t.Errorf("too early: %v", err)
						}
						close(begun)
						select {
						case <-r.Context().Done():
							told <- r.Context().Err()
						case <-time.After(patience):
							told <- errors.New("never")
						}
					})
					w := s.connect(t)
					w.say(tt.ask)
					if tt.name == "second request" {
						w.hear("GET")
					}
					comes(t, "the request", begun)
					leave(w)
					if err := comes(t, "the handler is told", told); !errors.Is(err, context.Canceled) {
						t.Errorf("%v", err)
					}
				})
			})
		}
	}
}

// TestClientLeavesInItsBody: the handler that reads is told by an error.
func TestClientLeavesInItsBody(t *testing.T) {
	for _, framing := range []string{"Content-Length: 9\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello"} {
		both(t, func(t *testing.T, k kind) {
			told := make(chan error, 1)
			s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if string(b) != "hello" {
					t.Errorf("%q", b)
				}
				told <- err
			})
			w := s.connect(t)
			w.say("POST / HTTP/1.1\r\nHost: a\r\n" + framing)
			_ = w.TCPConn.Close()
			if err := comes(t, "the handler is told", told); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestWriteToGone: who streams to a client that has left gets an error before long.
func TestWriteToGone(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		told := make(chan error, 1)
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			for range 10_000 {
				if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
					told <- err
					return
				}
				if err := rc.Flush(); err != nil {
					told <- err
					return
				}
				time.Sleep(time.Millisecond)
			}
			told <- nil
		})
		w := s.connect(t)
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, err := http.ReadResponse(w.br, nil); err != nil {
			t.Fatal(err)
		}
		w.drop()
		if err := comes(t, "the handler is told", told); err == nil {
			t.Error("everything was written")
		}
	})
}

// TestHalfClose: a client that says no more after its request still gets its
// answer. Whether the handler's context ends by that is open: it does in
// net/http's server, which takes it for a client that left.
func TestHalfClose(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint(stream), func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					for range 10 {
						time.Sleep(10 * time.Millisecond)
						_, _ = w.Write(b)
						if stream {
							w.(http.Flusher).Flush()
						}
					}
					if r.Context().Err() != nil {
						w.Header().Set("X-Left", "1")
					}
					t.Logf("context: %v", r.Context().Err())
				})
				w := s.connect(t)
				w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
				_ = w.CloseWrite()
				if a := w.hear("POST"); a.body != strings.Repeat("hello", 10) || a.bodyErr != nil {
					t.Errorf("%q %v", a.body, a.bodyErr)
				}
				w.ended()
			})
		})
	}
}

// TestPipelinedWhileWorking: requests that arrive while a handler works wait,
// do not end its context, and are answered in order.
func TestPipelinedWhileWorking(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		working, goOn := make(chan struct{}), make(chan struct{})
		var at atomic.Int32
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			if at.Add(1) > 1 && r.URL.Path == "/0" {
				t.Error("two at once")
			}
			if r.URL.Path == "/0" {
				close(working)
				<-goOn
				time.Sleep(100 * time.Millisecond)
				if err := r.Context().Err(); err != nil {
					t.Error(err)
				}
			}
			echo(w, r)
		})
		w := s.connect(t)
		w.say("GET /0 HTTP/1.1\r\nHost: a\r\n\r\n")
		comes(t, "the request", working)
		const more = 200
		for i := 1; i <= more; i++ {
			body := strings.Repeat("b", i)
			w.say(fmt.Sprintf("POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body))
		}
		close(goOn)
		w.hear("GET")
		for i := 1; i <= more; i++ {
			if a := w.hear("POST"); firstLine(a.body) != fmt.Sprintf("POST /%d %q", i, strings.Repeat("b", i)) {
				t.Fatalf("%d: %q", i, a.body)
			}
		}
		w.works()
	})
}

// TestContextEnds: a request's context ends with it, not before.
func TestContextEnds(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		ctxs := make(chan context.Context, 1)
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			if r.Context().Err() != nil {
				t.Error("too early")
			}
			ctxs <- r.Context()
			echo(w, r)
		})
		w := s.connect(t)
		for range 3 {
			w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
			ctx := comes(t, "the request", ctxs)
			w.hear("POST")
			comes(t, "its context ends", ctx.Done())
		}
	})
}
