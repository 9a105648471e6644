package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// soon is what may pass before something that must be prompt counts as stuck.
const soon = 5 * time.Second

// peer is a server whose connections are handled by a test's function.
type peer struct {
	url   string
	conns atomic.Int32 // accepted so far
	open  atomic.Int32 // not yet left by the handler
}

// listen starts a peer. handle gets each connection with its number, from 1;
// the connection is closed when it returns, and at the test's end.
func listen(t testing.TB, handle func(n int, c net.Conn, br *bufio.Reader)) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{url: "http://" + ln.Addr().String()}
	var wg sync.WaitGroup
	var mu sync.Mutex
	all := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			n := int(p.conns.Add(1))
			p.open.Add(1)
			mu.Lock()
			all[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer p.open.Add(-1)
				defer c.Close()
				handle(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for c := range all {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return p
}

// always answers every request of every connection with the same bytes.
func always(answer string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, c net.Conn, br *bufio.Reader) {
		for readRequest(br) == nil {
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}
}

// once answers the first request of a connection and closes it.
func once(answer string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, c net.Conn, br *bufio.Reader) {
		if readRequest(br) == nil {
			_, _ = io.WriteString(c, answer)
		}
	}
}

func readRequest(br *bufio.Reader) error {
	req, err := http.ReadRequest(br)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
}

// gone waits until the client has closed every connection.
func (p *peer) gone(t testing.TB) {
	t.Helper()
	eventually(t, "the client closes its connections", func() bool { return p.open.Load() == 0 })
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func newTransport(t testing.TB, cfg h1.Config) *h1.Transport {
	t.Helper()
	tr := h1.New(cfg)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// request makes one; body is a string, a []byte, an io.Reader (not in memory) or nil.
func request(t testing.TB, ctx context.Context, method, url string, body any) *http.Request {
	t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	case io.Reader:
		r = b
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// get makes a request and reads the answer.
func get(t testing.TB, rt http.RoundTripper, url string) (*http.Response, string) {
	t.Helper()
	resp, err := rt.RoundTrip(request(t, t.Context(), "GET", url, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// within fails the test if f takes too long.
func within(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("still running after %v", d)
	}
}
