package h1_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestNoRetryOfWork: a server that dies after it has worked for a while is not asked again.
func TestNoRetryOfWork(t *testing.T) {
	for works, want := range map[time.Duration]int32{time.Second: 3, 3 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int32
			tr := h1.New(h1.Config{DialContext: func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() {
					defer server.Close()
					br := bufio.NewReader(server)
					for readRequest(br) == nil {
						if requests.Add(1) > 1 {
							time.Sleep(works)
							return
						}
						_, _ = io.WriteString(server, okAnswer)
					}
				}()
				return client, nil
			}})
			get(t, tr, "http://a")
			_, err := tr.RoundTrip(request(t, t.Context(), "GET", "http://a", nil))
			var before *h1.BeforeResponseError
			if !errors.As(err, &before) || !errors.Is(err, io.ErrUnexpectedEOF) || requests.Load() != want {
				t.Errorf("after %v: %d requests, %T %v", works, requests.Load(), err, err)
			}
		})
	}
}

// brokenWrite is a connection whose peer has answered and stopped listening.
type brokenWrite struct{ net.Conn }

func (brokenWrite) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestAnswerToUnsent: what the server said before it closed is worth more than the failure to write.
func TestAnswerToUnsent(t *testing.T) {
	for _, body := range []any{"small", make([]byte, 1<<20)} {
		for _, answer := range []string{"HTTP/1.1 429 Slow Down\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 4", ""} {
			p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
				head, last := answer, ""
				if len(answer) > 20 {
					head, last = answer[:len(answer)-1], answer[len(answer)-1:]
				}
				_, _ = io.WriteString(c, head)
				if last != "" {
					<-time.After(400 * time.Millisecond) // the patience with the head must not end the body
				}
				_, _ = io.WriteString(c, last)
				_, _ = io.Copy(io.Discard, br)
			})
			tr := newTransport(t, h1.Config{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, network, addr)
				return brokenWrite{c}, err
			}})
			resp, err := tr.RoundTrip(request(t, t.Context(), "POST", p.url, body))
			var head *h1.HeaderError
			var before *h1.BeforeResponseError
			switch {
			case answer == "":
				if !errors.As(err, &before) || !errors.Is(err, syscall.EPIPE) {
					t.Errorf("silent: %T %v", err, err)
				}
			case err != nil:
				if len(answer) > 20 || !errors.As(err, &head) {
					t.Errorf("%q: %T %v", answer, err, err)
				}
			default:
				if b, err := io.ReadAll(resp.Body); resp.StatusCode != 429 || string(b) != "no" || err != nil {
					t.Errorf("%d %q %v", resp.StatusCode, b, err)
				}
			}
			if tr.IdleConns() != 0 {
				t.Error("the connection was kept")
			}
			p.gone(t)
		}
	}
}

// deadlines remembers the last write deadline.
type deadlines struct {
	net.Conn
	mu   *sync.Mutex
	last *time.Time
}

func (d deadlines) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.last = t
	return d.Conn.SetWriteDeadline(t)
}

// TestNoWriteDeadlineWhileReadingTLS: the answer to a key update in the middle
// of a long stream is written by Read.
func TestNoWriteDeadlineWhileReadingTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer srv.Close()
	var mu sync.Mutex
	last := time.Now()
	tr := newTransport(t, h1.Config{
		TLS: srv.Client().Transport.(*http.Transport).TLSClientConfig,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return deadlines{c, &mu, &last}, err
		},
	})
	resp, err := tr.RoundTrip(request(t, t.Context(), "POST", srv.URL, "body"))
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if !last.IsZero() {
		t.Error("a deadline is left")
	}
	mu.Unlock()
	_, _ = io.ReadAll(resp.Body)
}

// slowBody takes its time to notice that nobody wants it.
type slowBody struct {
	io.Reader
	left atomic.Bool // nobody is in WriteTo
}

func (b *slowBody) WriteTo(w io.Writer) (int64, error) {
	for total := int64(0); ; {
		n, err := w.Write(make([]byte, 1<<20))
		total += int64(n)
		if err != nil || total == 16<<20 {
			<-time.After(50 * time.Millisecond)
			b.left.Store(true)
			return total, err
		}
	}
}

func (*slowBody) Close() error { return nil }

// TestBodyIsTheCallersAgain: a buffer that goes back to a pool must not still
// be on its way to another upstream.
func TestBodyIsTheCallersAgain(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"} {
		for _, end := range []string{"read", "close", "cancel"} {
			release := make(chan struct{})
			p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
				_, _ = br.Peek(1)
				_, _ = io.WriteString(c, answer)
				if answer != "" || end == "cancel" {
					<-release
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			b := new(slowBody)
			req := request(t, ctx, "POST", p.url, nil)
			req.Body, req.ContentLength = b, 16<<20
			req.GetBody = func() (io.ReadCloser, error) { return b, nil }
			resp, err := newTransport(t, h1.Config{}).RoundTrip(req)
			if (err == nil) != (answer != "") {
				t.Error(err)
			}
			if err == nil {
				if end == "cancel" {
					<-ctx.Done()
				}
				if end != "close" {
					_, _ = io.ReadAll(resp.Body)
				} else {
					_ = resp.Body.Close()
				}
			}
			if !b.left.Load() {
				t.Errorf("answer %q, %s: the body is still in use", answer, end)
			}
			cancel()
			close(release)
		}
	}
}

// TestNoRetryOfSlowness: a reused connection that does not take the request is
// not one that was closed.
func TestNoRetryOfSlowness(t *testing.T) {
	release := make(chan struct{})
	p := listen(t, func(n int, c net.Conn, br *bufio.Reader) {
		once(okAnswer)(n, c, br)
		<-release
	})
	defer close(release)
	tr := newTransport(t, h1.Config{WriteTimeout: 50 * time.Millisecond})
	get(t, tr, p.url)
	_, err := tr.RoundTrip(request(t, t.Context(), "POST", p.url, make([]byte, 16<<20)))
	if !errors.Is(err, os.ErrDeadlineExceeded) || p.conns.Load() != 1 {
		t.Errorf("%d connections, %v", p.conns.Load(), err)
	}
}
