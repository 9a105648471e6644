package h1_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// The tests here are of a request on a TCP connection that was used before: it
// is looked at, written to and read from in one.

// dialled is a dialer that tells of its connections.
func dialled(got chan<- *net.TCPConn) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			got <- c.(*net.TCPConn)
		}
		return c, err
	}
}

// TestManyDead: each dead connection is found out, and none of them is written to.
func TestManyDead(t *testing.T) {
	for _, last := range []string{"", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"} {
		const dead = 5
		end := make(chan struct{})
		var said, served sync.WaitGroup
		said.Add(dead)
		served.Add(dead)
		p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
			if n > dead {
				always(okAnswer)(n, c, br)
				return
			}
			if readRequest(br) != nil {
				t.Error("no request")
			}
			served.Done()
			served.Wait()
			_, _ = io.WriteString(c, okAnswer)
			<-end
			_, _ = io.WriteString(c, last)
			_ = c.(*net.TCPConn).CloseWrite()
			said.Done()
			if n, _ := io.Copy(io.Discard, br); n > 0 {
				t.Errorf("%d bytes were sent", n)
			}
		})
		tr := newTransport(t, h1.Config{})
		var wg sync.WaitGroup
		for range dead {
			wg.Go(func() { get(t, tr, p.url) })
		}
		wg.Wait()
		if n := tr.IdleConns(); n != dead {
			t.Fatalf("%d idle", n)
		}
		close(end)
		said.Wait()
		resp, err := tr.RoundTrip(request(t, t.Context(), "POST", p.url, "body"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(b) != "ok" || err != nil {
			t.Errorf("%d %q %v", resp.StatusCode, b, err)
		}
		if p.conns.Load() != dead+1 || tr.IdleConns() != 1 {
			t.Errorf("%d connections, %d idle", p.conns.Load(), tr.IdleConns())
		}
		eventually(t, "the dead are closed", func() bool { return p.open.Load() == 1 })
	}
}

// TestEndWhileAsking ends a request that waits for an answer, by cancelling and by a deadline.
func TestEndWhileAsking(t *testing.T) {
	for _, by := range []string{"cancel", "deadline"} {
		for _, said := range []string{"", "HTTP/1.1 2"} {
			p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
				once(okAnswer)(n, c, br)
				_ = readRequest(br)
				_, _ = io.WriteString(c, said)
				_, _ = io.Copy(io.Discard, br)
			})
			tr := newTransport(t, h1.Config{})
			get(t, tr, p.url)
			ctx, want := t.Context(), errLeft
			if by == "deadline" {
				dctx, stop := context.WithTimeout(ctx, 50*time.Millisecond)
				defer stop()
				ctx, want = dctx, context.DeadlineExceeded
			} else {
				cctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(50*time.Millisecond, func() { cancel(errLeft) })
				ctx = cctx
			}
			within(t, soon, func() {
				if _, err := tr.RoundTrip(request(t, ctx, "PUT", p.url, "body")); err != want {
					t.Errorf("%s after %q: %T %v", by, said, err, err)
				}
			})
			if tr.IdleConns() != 0 || p.conns.Load() != 1 {
				t.Errorf("%d idle, %d connections", tr.IdleConns(), p.conns.Load())
			}
			p.gone(t)
		}
	}
}

// endsAtOnce is a context that ends as it is tied to a connection.
type endsAtOnce struct {
	context.Context
	err error
}

func (c *endsAtOnce) Err() error { return c.err }

func (c *endsAtOnce) AfterFunc(f func()) func() bool {
	c.err = context.Canceled
	f()
	return func() bool { return false }
}

// TestEndBeforeAsking: of a request that was cancelled nothing is written, and
// it takes no second connection with it.
func TestEndBeforeAsking(t *testing.T) {
	var wrote sync.WaitGroup
	wrote.Add(2)
	p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
		_ = readRequest(br)
		wrote.Done()
		wrote.Wait()
		_, _ = io.WriteString(c, okAnswer)
		if n, _ := io.Copy(io.Discard, br); n > 0 {
			t.Errorf("%d bytes were sent", n)
		}
	})
	tr := newTransport(t, h1.Config{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { get(t, tr, p.url) })
	}
	wg.Wait()
	_, err := tr.RoundTrip(request(t, &endsAtOnce{Context: t.Context()}, "POST", p.url, "body"))
	var dial *h1.DialError
	if !errors.As(err, &dial) || !errors.Is(err, context.Canceled) {
		t.Errorf("%T %v", err, err)
	}
	if tr.IdleConns() != 1 || p.conns.Load() != 2 {
		t.Errorf("%d idle, %d connections", tr.IdleConns(), p.conns.Load())
	}
}

// TestAskBlocks: a request that does not go out in one piece, because the peer
// reads it late, answers before it reads it, or never reads it.
func TestAskBlocks(t *testing.T) {
	pad := strings.Repeat("0123456789abcdef", 1<<20) // more than the buffers of both sides
	for _, then := range []string{"reads late", "answers first", "never reads"} {
		t.Run(then, func(t *testing.T) {
			release := make(chan struct{})
			got := make(chan string, 1)
			p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
				once(okAnswer)(n, c, br)
				if then == "never reads" {
					<-release
					return
				}
				if _, err := br.Peek(1); err == nil && then == "answers first" {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
				}
				<-time.After(50 * time.Millisecond)
				req, err := http.ReadRequest(br)
				if err != nil {
					t.Error(err)
					return
				}
				b, _ := io.ReadAll(req.Body)
				got <- req.Header.Get("X-Pad") + string(b)
				if then == "reads late" {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
				}
				_, _ = io.Copy(io.Discard, br)
			})
			defer close(release)
			tr := newTransport(t, h1.Config{WriteTimeout: 500 * time.Millisecond})
			get(t, tr, p.url)
			req := request(t, t.Context(), "POST", p.url, "body")
			req.Header.Set("X-Pad", pad)
			var resp *http.Response
			var err error
			within(t, soon, func() { resp, err = tr.RoundTrip(req) })
			if then == "never reads" {
				var before *h1.BeforeResponseError
				if !errors.As(err, &before) || !errors.Is(err, os.ErrDeadlineExceeded) || p.conns.Load() != 1 {
					t.Errorf("%T %v, %d connections", err, err, p.conns.Load())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); string(b) != map[string]string{"reads late": "late", "answers first": "early"}[then] || err != nil {
				t.Errorf("%q %v", b, err)
			}
			if arrived := <-got; arrived != pad+"body" {
				t.Errorf("%d bytes arrived", len(arrived))
			}
		})
	}
}

// TestAskInVain: a connection on which nothing can be written any more, though
// nothing says so before. What its peer says at last counts; if that is nothing,
// the request is made again, since it cannot have arrived.
func TestAskInVain(t *testing.T) {
	for last, want := range map[string]string{"": "ok", "HTTP/1.1 429 Slow Down\r\nContent-Length: 2\r\n\r\nno": "no"} {
		end := make(chan struct{})
		p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
			if n > 1 {
				always(okAnswer)(n, c, br)
				return
			}
			once(okAnswer)(n, c, br)
			<-end
			_, _ = io.WriteString(c, last)
		})
		conns := make(chan *net.TCPConn, 9)
		tr := newTransport(t, h1.Config{DialContext: dialled(conns)})
		get(t, tr, p.url)
		_ = (<-conns).CloseWrite()
		time.AfterFunc(50*time.Millisecond, func() { close(end) })
		resp, err := tr.RoundTrip(request(t, t.Context(), "POST", p.url, "body"))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != want || err != nil {
			t.Errorf("%q %v, want %q", b, err, want)
		}
	}
}

// TestAnswersStayApart: whatever happens to the requests before, an answer is
// that of its request.
func TestAnswersStayApart(t *testing.T) {
	p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return
			}
			answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			switch rand.IntN(8) {
			case 0:
				<-time.After(2 * time.Millisecond)
			case 1: // in pieces
				cut := rand.IntN(len(answer))
				_, _ = io.WriteString(c, answer[:cut])
				<-time.After(time.Millisecond)
				answer = answer[cut:]
			case 2: // the connection ends with it, though nothing says so
				_, _ = io.WriteString(c, answer)
				return
			case 3: // more than was asked for
				answer += okAnswer
			}
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
	tr := newTransport(t, h1.Config{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 0 {
					time.AfterFunc(time.Duration(rand.IntN(1500))*time.Microsecond, cancel)
				}
				body := fmt.Sprint(g, "/", i, strings.Repeat(" ", 1+rand.IntN(6000)))
				resp, err := tr.RoundTrip(request(t, ctx, "PUT", p.url, body))
				if err == nil {
					var b []byte
					if b, err = io.ReadAll(resp.Body); err == nil && string(b) != body {
						t.Errorf("%.20q was answered to %.20q", b, body)
					}
					_ = resp.Body.Close()
				}
				cancel()
			}
		})
	}
	wg.Wait()
}
