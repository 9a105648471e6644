package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// strictUpstream is an upstream that reads requests as strictly as can be, and keeps what
// it could not read.
type strictUpstream struct {
	mu    sync.Mutex
	seen  []string // of each request, what it was
	wrong []string
}

// serve reads requests from a connection until its end.
func (u *strictUpstream) serve(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		var raw bytes.Buffer
		req, err := http.ReadRequest(bufio.NewReaderSize(io.TeeReader(oneByte{br}, &raw), 16))
		var body []byte
		if err == nil {
			body, err = io.ReadAll(req.Body)
		}
		u.mu.Lock()
		switch {
		case raw.Len() == 0:
			u.mu.Unlock()
			return
		case err == nil:
			u.seen = append(u.seen, fmt.Sprintf("%s %s %q", req.Method, req.URL.Path, body))
			text := raw.String()
			if n := strings.Count(strings.ToLower(text), "\r\ncontent-length:") + strings.Count(strings.ToLower(text), "\r\ntransfer-encoding:"); n > 1 {
				u.wrong = append(u.wrong, text)
			}
		case !errors.Is(err, io.ErrUnexpectedEOF): // one that was cut is no request
			u.wrong = append(u.wrong, fmt.Sprintf("%v: %q", err, raw.String()))
		}
		u.mu.Unlock()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// oneByte reads a byte at a time, so that nothing of the next request is taken.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// TestSmuggling: requests in all the ways in which servers were once made to
// disagree about where one ends. What reaches the upstream is framed in one way only,
// and is what net/http takes the client's bytes for: no request more, and no other.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	up := &strictUpstream{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go up.serve(c)
		}
	}()
	// Without keys of its own the gateway leaves foreign hosts alone: what is asked here is how requests are read.
	g := startYAML(t, "listen: 127.0.0.1:0\nupstreams: {default: {url: \"http://"+l.Addr().String()+"/v1\"}}\nlimits: {idle_timeout: 300ms, head_timeout: 300ms, body_timeout: 300ms}\n")
	said, want := map[string]string{}, map[string]bool{}
	var clients sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i, say := range smuggling() {
		number := fmt.Sprint("/v1/", i)
		say = strings.ReplaceAll(strings.ReplaceAll(say, " / HTTP", " "+number+"/a HTTP"), "/smuggled", number+"/smuggled")
		understand := understood(say)
		said[number] = say
		for _, req := range understand {
			want[req] = true
		}
		slots <- struct{}{}
		clients.Go(func() {
			defer func() { <-slots }()
			c := dial(t, g)
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.WriteString(c, say)
			answers, err := io.ReadAll(c)
			_ = c.Close()
			if os.IsTimeout(err) {
				t.Errorf("no end: %.300q", say)
			}
			if n := bytes.Count(answers, []byte("HTTP/1.1 200")); n > len(understand) {
				t.Errorf("%.300q\n%d answers to %d requests", say, n, len(understand))
			}
		})
	}
	clients.Wait()
	up.mu.Lock()
	defer up.mu.Unlock()
	for _, got := range up.seen {
		if !want[got] {
			parts := strings.Split(got, "/")
			t.Errorf("%.300q\nbecame %q", said["/v1/"+parts[min(2, len(parts)-1)]], got)
		}
	}
	for _, w := range up.wrong {
		t.Errorf("framed in several ways or none: %.300q", w)
	}
	if len(up.seen) < len(want)/2 {
		t.Errorf("of %d requests %d reached the upstream: the test shows little", len(want), len(up.seen))
	}
	t.Logf("%d clients, %d requests understood, %d reached the upstream", len(said), len(want), len(up.seen))
}

// understood are the requests below /v1 that net/http's server reads from these bytes.
func understood(say string) (all []string) {
	br := bufio.NewReader(strings.NewReader(say))
	for method := ""; ; {
		for range 4 { // it skips as much behind a POST
			if b, err := br.Peek(1); err == nil && method == http.MethodPost && (b[0] == '\r' || b[0] == '\n') {
				_, _ = br.Discard(1)
			}
		}
		req, err := http.ReadRequest(br)
		if err != nil {
			return all
		}
		method = req.Method
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return all
		}
		if strings.HasPrefix(req.URL.Path, "/v1/") {
			all = append(all, fmt.Sprintf("%s %s %q", req.Method, req.URL.Path, body))
		}
	}
}

// smuggling are requests in the ways in which proxies and servers were once
// made to disagree about where one ends: a length, chunks, or both, spelled in
// a way that one of them takes for something else. Each has another behind it.
func smuggling() (all []string) {
	next := "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, te := range []string{
		"Transfer-Encoding: chunked", "Transfer-Encoding:chunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding:  chunked ", "transfer-encoding: CHUNKED",
		"Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Transfer-Encoding\x0b: chunked", "Transfer-Encoding\xa0: chunked", "Transfer-Encoding\x00: chunked",
		"Transfer_Encoding: chunked", "Transfer Encoding: chunked", " Transfer-Encoding: chunked", "\tTransfer-Encoding: chunked", "\x00Transfer-Encoding: chunked",
		"X: a\nTransfer-Encoding: chunked", "X: a\rTransfer-Encoding: chunked", "X: a\r\n\rTransfer-Encoding: chunked", "X: a\r\r\nTransfer-Encoding: chunked", "X\r\n: a\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: xchunked", "Transfer-Encoding: chunkedx", "Transfer-Encoding: chunk", "Transfer-Encoding: 'chunked'", "Transfer-Encoding: \"chunked\"",
		"Transfer-Encoding: \x00chunked", "Transfer-Encoding: chunked\x00", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding: \xa0chunked", "Transfer-Encoding: \x85chunked", "Transfer-Encoding: chunked\r",
		"Transfer-Encoding:\n chunked", "Transfer-Encoding:\r\n chunked", "Transfer-Encoding:\r\n\tchunked\r\n ", "Transfer-Encoding:\r\n\r\n chunked",
		"Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: , chunked", "Transfer-Encoding: chunked,", "Transfer-Encoding: chunked;q=1",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "Transfer-Encoding:\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding: chun\u212aed", "Transfer-Encoding: chunked\r\nConnection: clo\u017fe",
		"Transfer-Encoding", "Transfer-Encoding:", "TE: chunked", "Content-Encoding: chunked", "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked", "X: a",
	} {
		for _, length := range []string{"", "Content-Length: 3\r\n", "Content-Length: 15\r\n"} {
			head := "POST / HTTP/1.1\r\nHost: a\r\n"
			body := "\r\n5\r\nhello\r\n0\r\n\r\n" + next
			all = append(all, head+length+te+"\r\n"+body)
			if length != "" {
				all = append(all, head+te+"\r\n"+length+body)
			}
		}
	}
	for _, length := range []string{"5", " 5 ", "+5", "-5", "0x5", "05", "5 5", "5,5", "5, 6", "5\r\nContent-Length: 5", "5\r\nContent-Length: 6",
		"5\r\ncontent-length: +5", "5\x00", "\x0b5", "5\xa0", "\u0665", "",
		"5\r\n ", "\r\n 5", "5\r\n 0", "5;", "5e0", "4294967301", "9223372036854775807", "9223372036854775808", "18446744073709551621", strings.Repeat("0", 40) + "5", strings.Repeat("9", 40)} {
		for _, method := range []string{"POST", "GET", "HEAD"} {
			all = append(all, method+" / HTTP/1.1\r\nHost: a\r\nContent-Length: "+length+"\r\n\r\nhello"+next)
		}
	}
	for _, size := range []string{"5", "05", "+5", "-5", "0x5", " 5", "5 ", "5\t", "5;", "5;a=b", "5; a", "5 ;a", "5;a\n", "5\n", "5\r", "5\r\r", "5_", "5g", "", ";",
		"\x00", "0000000000000005", "00000000000000005", "100000005", "fffffffffffffffb", "10000000000000005"} {
		for _, end := range []string{"\r\n", "\n", "\r", "", "\r\n\r\n", "xx"} {
			all = append(all, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+size+"\r\nhello"+end+"0\r\n\r\n"+next)
		}
		all = append(all, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0"+size+"\r\n\r\n"+next)
	}
	for _, target := range []string{"/", "*", "//", "///x", "/a//b", "/..", "http://b", "http://b/", "http://b?x", "http://", "http:///a", "http:/a", "ftp://b/a",
		"HTTP://b/", "b:80", "b", "/a#b", "/ä", "/\xff", "/%", "/%00", "/%2", "?", "#", "\\", "/\\", "/\x01", "/a\x00", "http://u:p@b/", "http://[::1]/", "http://[::1", "http://b:x/", "mailto:a", ":", "/:"} {
		for _, method := range []string{"GET", "CONNECT", "OPTIONS"} {
			all = append(all, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\n\r\n%s", method, target, next))
		}
	}
	for _, host := range []string{"", "a", "a:80", "a b", "a/b", "a@b", "[::1]", "a\x00", "ä", "a,b", "a\r\nHost: b", "a\r\nhost: a", "a\r\n b", "<a>", "a;b", "%41", "a%zz"} {
		all = append(all, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+next, "GET http://b/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+next, "GET / HTTP/1.0\r\nHost: "+host+"\r\nConnection: keep-alive\r\n\r\n"+next)
	}
	return append(all, strings.Repeat(next, 50), "\r\n"+next, "\n"+next, "\r\n\r\n\r\n"+next, "POST / HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\n\r\n"+next, "POST / HTTP/1.1\r\nHost: a\r\n\r\n\n\n"+next,
		"GET / HTTP/1.0\r\nConnection: \u212aeep-alive\r\n\r\n"+next,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+next, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA\r\n\r\n"+next,
		"GET /\r\n"+next, "GET / HTTP/0.9\r\n\r\n"+next, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"+next, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"+next,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", string(bytes.Repeat([]byte{0}, 100)), "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("y", 70_000/2)+"\r\n\r\n"+next)
}
