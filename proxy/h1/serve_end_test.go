package h1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestShutdown: idle connections are closed, a request under way is answered,
// and nobody new is let in.
func TestShutdown(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint(stream), func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				working, goOn := make(chan struct{}), make(chan struct{})
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/again" {
						echo(w, r)
						return
					}
					if stream {
						_, _ = io.WriteString(w, "he")
						w.(http.Flusher).Flush()
					}
					close(working)
					<-goOn
					if err := r.Context().Err(); err != nil {
						t.Error(err)
					}
					_, _ = io.WriteString(w, "llo")
				})
				idle, active := s.connect(t), s.connect(t)
				idle.works()
				active.say("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
				comes(t, "the request", working)
				ended := make(chan error, 1)
				go func() { ended <- s.Shutdown(t.Context()) }()
				idle.ended()
				if err := comes(t, "Serve returns", s.done); err != http.ErrServerClosed {
					t.Error(err)
				}
				s.done <- http.ErrServerClosed // for the end of the test
				if c, err := net.Dial("tcp", s.addr); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("somebody new: %v", err)
					if c != nil {
						_ = c.Close()
					}
				}
				select {
				case err := <-ended:
					t.Errorf("Shutdown did not wait: %v", err)
				case <-time.After(50 * time.Millisecond):
				}
				close(goOn)
				a, want := active.hear("GET"), "llo"
				if stream {
					want = "hello"
				}
				if a.body != want || a.bodyErr != nil || !stream && !a.Close {
					t.Errorf("%q %v %v", a.body, a.bodyErr, a.Header)
				}
				active.ended() // the second request is the next server's
				if err := comes(t, "Shutdown returns", ended); err != nil {
					t.Error(err)
				}
				if err := s.Serve(s.gate); err != http.ErrServerClosed {
					t.Errorf("serves again: %v", err)
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Errorf("second: %v", err)
				}
			})
		})
	}
}

// TestShutdownOfSilence: connections on which nothing or half a head was said do not hold it up.
func TestShutdownOfSilence(t *testing.T) {
	s := serve(t, ours(), echo)
	silent, half := s.connect(t), s.connect(t)
	half.say("GET / HTTP/1.1\r\nHo")
	happens(t, "both are there", func() bool { return s.gate.conns.Load() == 2 })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	silent.ended()
	half.ended()
}

// TestShutdownGivesUp: with its context; the request goes on, until Close.
func TestShutdownGivesUp(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		working, told := make(chan struct{}), make(chan struct{})
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			close(working)
			<-r.Context().Done()
			close(told)
		})
		w := s.connect(t)
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		comes(t, "the request", working)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		select {
		case <-told:
			t.Error("Shutdown cancelled the request")
		default:
		}
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		comes(t, "the handler is told", told)
		w.ended()
	})
}

// TestClose cancels and closes, in whatever phase a connection is.
func TestClose(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		var told sync.WaitGroup
		told.Add(3)
		var working sync.WaitGroup
		working.Add(3)
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/again" {
				echo(w, r)
				return
			}
			defer told.Done()
			working.Done()
			switch r.URL.Path {
			case "/read":
				_, _ = io.ReadAll(r.Body)
			case "/write":
				for {
					if _, err := w.Write(make([]byte, 100_000)); err != nil {
						return
					}
				}
			}
			<-r.Context().Done()
		})
		idle := s.connect(t)
		idle.works()
		for _, ask := range []string{"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", "POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello", "GET /write HTTP/1.1\r\nHost: a\r\n\r\n"} {
			s.connect(t).say(ask)
		}
		done := make(chan struct{})
		go func() { working.Wait(); close(done) }()
		comes(t, "the requests", done)
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		idle.ended()
		done = make(chan struct{})
		go func() { told.Wait(); close(done) }()
		comes(t, "the handlers return", done)
	})
}

// TestShutdownMeetsAnswers: a connection whose answer ends while Shutdown looks
// at the connections is not forgotten.
func TestShutdownMeetsAnswers(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		func() {
			s := serve(t, ours(), func(http.ResponseWriter, *http.Request) {})
			var wires []*wire
			for range 100 {
				w := s.connect(t)
				w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				w.hear("GET")
				wires = append(wires, w)
			}
			for _, w := range wires {
				w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			for _, w := range wires {
				_ = w.TCPConn.Close()
			}
		}()
	}
}

// TestListenerFails: a failure that passes is survived, another one ends Serve.
func TestListenerFails(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		noGoroutineLeft(t)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		dead := errors.New("dead")
		fails := make(chan error, 2)
		fails <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		var log records
		srv := k.make(h1.ServerConfig{Handler: http.HandlerFunc(echo), Log: log.logger()})
		done := make(chan error, 1)
		go func() { done <- srv.Serve(failing{ln, fails}) }()
		s := &site{serving: srv, addr: ln.Addr().String()}
		w := s.connect(t)
		w.works()
		if log.String() == "" {
			t.Error("no word about it")
		}
		fails <- dead
		s.connect(t) // after which the listener is asked again
		if err := comes(t, "Serve returns", done); !errors.Is(err, dead) {
			t.Error(err)
		}
		w.works() // what was accepted lives
		_ = srv.Close()
	})
}

// failing is a listener whose Accept fails as it is told to.
type failing struct {
	net.Listener
	fails chan error
}

func (f failing) Accept() (net.Conn, error) {
	select {
	case err := <-f.fails:
		return nil, err
	default:
		return f.Listener.Accept()
	}
}

// TestTwoListeners: both are served, and both are closed.
func TestTwoListeners(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, echo)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Serve(ln) }()
		s.connect(t).works()
		(&site{addr: ln.Addr().String()}).connect(t).works()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := comes(t, "Serve returns", done); err != http.ErrServerClosed {
			t.Error(err)
		}
	})
}
