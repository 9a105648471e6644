package h1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// scripted is a connection whose peer says what it says, a few bytes at a time,
// and takes everything.
type scripted struct {
	net.Conn
	data  []byte
	sizes []byte
	reads int
	sent  bytes.Buffer
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	size := len(s.data)
	if len(s.sizes) > 0 {
		size = int(s.sizes[s.reads%len(s.sizes)]) + 1
		s.reads++
	}
	n := copy(b, s.data[:min(size, len(s.data))])
	s.data = s.data[n:]
	return n, nil
}

func (s *scripted) Write(b []byte) (int, error)      { return s.sent.Write(b) }
func (*scripted) Close() error                       { return nil }
func (*scripted) SetReadDeadline(t time.Time) error  { return nil }
func (*scripted) SetWriteDeadline(t time.Time) error { return nil }

// ask makes a request on a scripted connection.
func ask(t *testing.T, req *http.Request, s *scripted) (tr *Transport, resp *http.Response, body string, err error) {
	tr = New(Config{MaxHeaderBytes: 20 << 10})
	head, err := writeHead(req)
	if err != nil {
		return tr, nil, "", err
	}
	resp, err = tr.newExchange(&conn{nc: s, tcp: s}, req.WithContext(t.Context()), req.Body).run(head)
	if err != nil {
		return tr, nil, "", err
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return tr, resp, string(b), err
}

// FuzzResponse reads anything as a response: in whole and in pieces with the same
// result; a connection is kept only if nothing is left on it and the server wants it.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200\r\nX-a:  b\r\n\tc\r\n\r\nhello",
		"HTTP/1.0 200 OK\nConnection: keep-alive, close\nContent-Length: 3\ncontent-length: 3\n\nabc",
		"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n",
	} {
		f.Add([]byte(s), []byte{0, 3, 200}, false)
		f.Add([]byte(s), []byte{}, true)
	}
	f.Fuzz(func(t *testing.T, data, sizes []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		req := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "a"}}
		whole := &scripted{data: data}
		tr, resp, body, err := ask(t, req, whole)
		_, _, again, errAgain := ask(t, req, &scripted{data: data, sizes: sizes})
		// What is too long to look ahead into depends on how it arrives; the rest must not.
		if (err == nil) != (errAgain == nil) && !strings.Contains(text(err)+text(errAgain), "trailer") || err == nil && body != again {
			t.Fatalf("in whole %q %v\nin pieces %q %v", body, err, again, errAgain)
		}
		var before *BeforeResponseError
		if resp == nil && errors.As(err, &before) != (len(data) == 0) {
			t.Fatalf("%T %v", err, err)
		}
		if kept := tr.IdleConns() == 1; kept && (err != nil || resp.Close || len(whole.data) > 0) {
			t.Fatalf("kept: %v, %d bytes left", err, len(whole.data))
		}
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzRequest sends anything: what is not refused is exactly one request to a
// server, with these headers and this body.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/v1/chat/completions", "a=b", "api.example:80", "X-A", "b", []byte("body"), false)
	f.Add("GET", "/ä b", "", "[::1]", "Connection", "close", []byte(""), false)
	f.Add("GET", "//x?", "a#b", "a", "content-length", "9", []byte("x"), true)
	f.Fuzz(func(t *testing.T, method, path, query, host, name, value string, body []byte, chunked bool) {
		req := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: host, Path: path, RawQuery: query},
			Header: http.Header{name: {value, "second"}}, ContentLength: int64(len(body))}
		if len(body) > 0 {
			req.Body = io.NopCloser(bytes.NewReader(body))
			if chunked {
				req.ContentLength = -1
			}
		}
		s := &scripted{data: []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")}
		if _, _, _, err := ask(t, req, s); err != nil {
			if s.sent.Len() > 0 {
				t.Fatalf("%q was sent: %v", s.sent.String(), err)
			}
			return
		}
		br := bufio.NewReader(&s.sent)
		got, err := http.ReadRequest(br)
		if err != nil {
			if strings.Contains(err.Error(), "parse") || strings.Contains(err.Error(), "Host") {
				return // a URL or host that we leave to the server to refuse
			}
			t.Fatalf("%v", err)
		}
		b, err := io.ReadAll(got.Body)
		if err != nil || !bytes.Equal(b, body) || br.Buffered() > 0 {
			t.Fatalf("body %q, %d more, %v", b, br.Buffered(), err)
		}
		for k, vv := range got.Header {
			if !strings.EqualFold(k, name) && k != "Content-Length" {
				t.Fatalf("header %q of our making", k)
			}
			if strings.EqualFold(k, name) && k != "Content-Length" && (len(vv) != 2 || vv[0] != strings.Trim(value, " \t")) {
				t.Fatalf("%q", vv)
			}
		}
	})
}
