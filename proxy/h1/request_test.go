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
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestRequestBytes pins what is sent, byte for byte.
func TestRequestBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		req  http.Request
		body io.Reader
		want string
	}{
		{"plain", http.Request{URL: &url.URL{Path: "/v1/models"}}, nil, "GET /v1/models HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"no path", http.Request{Method: "GET", URL: &url.URL{}}, nil, "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"query", http.Request{Method: "DELETE", URL: &url.URL{Path: "/a b/é", RawQuery: "x=1&y=%20"}}, nil, "DELETE /a%20b/%C3%A9?x=1&y=%20 HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"raw path", http.Request{Method: "GET", URL: &url.URL{Path: "/a/b", RawPath: "/a%2Fb"}}, nil, "GET /a%2Fb HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"host", http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Host: "other:81"}, nil, "GET / HTTP/1.1\r\nHost: other:81\r\n\r\n"},
		{"zone", http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Host: "[fe80::1%eth0]:81"}, nil, "GET / HTTP/1.1\r\nHost: [fe80::1]:81\r\n\r\n"},
		{"post of nothing", http.Request{Method: "POST", URL: &url.URL{Path: "/"}}, nil, "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
		{"values", http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Header: http.Header{"A": {" b ", "c\td"}}}, nil, "GET / HTTP/1.1\r\nHost: HOST\r\nA: b\r\nA: c\td\r\n\r\n"},
		{"framing is not the caller's", http.Request{Method: "POST", URL: &url.URL{Path: "/"}, ContentLength: 2,
			Header: http.Header{"Content-Length": {"9"}, "transfer-encoding": {"chunked"}, "hoST": {"x"}, "trailer": {"x"}}}, strings.NewReader("hi"),
			"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\nhi"},
		{"close", http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Close: true, Header: http.Header{"Connection": {"keep-alive"}}}, nil, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"},
		{"unknown length", http.Request{Method: "POST", URL: &url.URL{Path: "/"}, ContentLength: -1}, iotest.OneByteReader(strings.NewReader("hi")),
			"POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n"},
		{"last bytes with the end", http.Request{Method: "POST", URL: &url.URL{Path: "/"}, ContentLength: -1}, iotest.DataErrReader(strings.NewReader("hello hello hello")),
			"POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n11\r\nhello hello hello\r\n0\r\n\r\n"},
		{"known length, not in memory", http.Request{Method: "POST", URL: &url.URL{Path: "/"}, ContentLength: 2}, iotest.OneByteReader(strings.NewReader("hi")),
			"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\nhi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan string, 1)
			p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
				want := strings.ReplaceAll(tt.want, "HOST", c.LocalAddr().String())
				b := make([]byte, len(want))
				n, _ := io.ReadFull(br, b)
				got <- string(b[:n])
				_, _ = io.WriteString(c, okAnswer)
				if rest, _ := io.ReadAll(br); len(rest) > 0 {
					t.Errorf("more: %q", rest)
				}
			})
			req := tt.req.Clone(t.Context())
			req.URL.Scheme, req.URL.Host = "http", p.url[len("http://"):]
			want := strings.ReplaceAll(tt.want, "HOST", req.URL.Host)
			if tt.body != nil {
				req.Body = io.NopCloser(tt.body)
			}
			tr := newTransport(t, h1.Config{})
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			if b := <-got; b != want {
				t.Errorf("sent %q\nwant %q", b, want)
			}
			if kept := tr.IdleConns() == 1; kept == req.Close {
				t.Errorf("kept: %v", kept)
			}
			tr.CloseIdleConnections()
			p.gone(t)
		})
	}
}

// closeCounter is a body that knows whether it was closed.
type closeCounter struct {
	io.Reader
	closed chan struct{}
}

func (c closeCounter) Close() error {
	select {
	case c.closed <- struct{}{}:
	default:
	}
	return nil
}

// TestInvalidRequests: nothing is dialled for them, and the body is closed.
func TestInvalidRequests(t *testing.T) {
	ok := func() *http.Request {
		return &http.Request{Method: "POST", URL: &url.URL{Scheme: "http", Host: "a", Path: "/"}, Header: http.Header{}, ContentLength: 2}
	}
	for name, spoil := range map[string]func(*http.Request){
		"method with space":    func(r *http.Request) { r.Method = "GET /\r\nX: y" },
		"connect":              func(r *http.Request) { r.Method = "CONNECT" },
		"no URL":               func(r *http.Request) { r.URL = nil },
		"scheme":               func(r *http.Request) { r.URL.Scheme = "ftp" },
		"no host":              func(r *http.Request) { r.URL.Host = "" },
		"only a port":          func(r *http.Request) { r.URL.Host = ":80" },
		"CRLF in URL host":     func(r *http.Request) { r.URL.Host = "a\r\nX: y" },
		"international host":   func(r *http.Request) { r.URL.Host = "bücher.example" },
		"CRLF in host":         func(r *http.Request) { r.Host = "a\r\nX: y" },
		"slash in host":        func(r *http.Request) { r.Host = "a/b" },
		"CRLF in query":        func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX: y" },
		"space in query":       func(r *http.Request) { r.URL.RawQuery = "a b" },
		"CRLF in opaque":       func(r *http.Request) { r.URL.Opaque = "/a\r\nX:y" },
		"CRLF in header value": func(r *http.Request) { r.Header["A"] = []string{"b\r\nX: y"} },
		"LF in header value":   func(r *http.Request) { r.Header["A"] = []string{"b\nX: y"} },
		"NUL in header value":  func(r *http.Request) { r.Header["A"] = []string{"b\x00"} },
		"CRLF in header name":  func(r *http.Request) { r.Header["A\r\nX"] = []string{"b"} },
		"colon in header name": func(r *http.Request) { r.Header["A:"] = []string{"b"} },
		"space in header name": func(r *http.Request) { r.Header["Content-Length "] = []string{"5"} },
		"empty header name":    func(r *http.Request) { r.Header[""] = []string{"b"} },
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTransport(t, h1.Config{DialContext: func(context.Context, string, string) (net.Conn, error) {
				t.Error("dialled")
				return nil, errors.New("no")
			}})
			req := ok()
			body := closeCounter{strings.NewReader("hi"), make(chan struct{}, 1)}
			req.Body = body
			spoil(req)
			_, err := tr.RoundTrip(req.WithContext(t.Context()))
			var invalid *h1.RequestError
			if !errors.As(err, &invalid) {
				t.Errorf("%T %v", err, err)
			}
			if len(body.closed) != 1 {
				t.Error("the body was not closed")
			}
		})
	}
}

// TestSecretsStayOut: an error ends in logs.
func TestSecretsStayOut(t *testing.T) {
	req := request(t, t.Context(), "GET", "http://a", nil)
	req.Header.Set("Authorization", "Bearer sk-secret\n")
	if _, err := newTransport(t, h1.Config{}).RoundTrip(req); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestBadRequestBodies: bodies that fail or lie about their length.
func TestBadRequestBodies(t *testing.T) {
	boom := errors.New("boom")
	for _, size := range []int{10, 100 << 10, 1 << 20} {
		data := bytes.Repeat([]byte{'x'}, size)
		for _, tt := range []struct {
			name   string
			body   func() io.Reader
			length int
			is     error
		}{
			{"short", func() io.Reader { return bytes.NewReader(data) }, size + 1, io.ErrUnexpectedEOF},
			{"long", func() io.Reader { return bytes.NewReader(data) }, size - 1, nil},
			{"fails", func() io.Reader { return io.MultiReader(bytes.NewReader(data), iotest.ErrReader(boom)) }, 2 * size, boom},
			{"fails, unknown length", func() io.Reader { return io.MultiReader(bytes.NewReader(data), iotest.ErrReader(boom)) }, -1, boom},
		} {
			for _, memory := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %d memory %v", tt.name, size, memory), func(t *testing.T) {
					p := listen(t, always(okAnswer))
					req := request(t, t.Context(), "POST", p.url, nil)
					body := closeCounter{tt.body(), make(chan struct{}, 1)}
					req.Body, req.ContentLength = body, int64(tt.length)
					if memory {
						req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(tt.body()), nil }
					}
					tr := newTransport(t, h1.Config{})
					_, err := tr.RoundTrip(req)
					var source *h1.RequestBodyError
					if !errors.As(err, &source) || tt.is != nil && !errors.Is(err, tt.is) {
						t.Errorf("%T %v", err, err)
					}
					if tr.IdleConns() != 0 {
						t.Error("the connection was kept")
					}
					<-body.closed
					p.gone(t)
				})
			}
		}
	}
}
