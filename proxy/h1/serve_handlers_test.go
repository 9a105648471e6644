package h1_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// FuzzServeHandler lets a handler do anything, in any order, under net/http's
// server and under ours: the client gets the same answer, and the handler the
// same errors. Each step is two bytes of the program: what, and how much.
func FuzzServeHandler(f *testing.F) {
	for i := range 6 {
		for _, p := range []string{"", "\x00\x05", "\x00\x05\x02\x00\x00\x09", "\x01\x09\x01\xff", "\x03\x02\x00\x05\x02\x00", "\x05\x05\x00\x05", "\x05\x09\x00\x05\x02\x00", "\x05\x03\x00\x05",
			"\x03\x06\x02\x00\x03\x04", "\x02\x00\x02\x00\x07\x00\x01\x20\x00\x01", "\x06\x00\x01\xff\x01\xff", "\x07\x00\x08\xff\x02\x00\x08\x01", "\x04\x01\x04\x02\x03\x01", "\x03\x03\x00\x00\x00\x01", "\x05\xff\x08\xf0\x02\x00\x00\x0f"} {
			f.Add([]byte(p), byte(i))
		}
	}
	std, our := newPlayer(f, kinds()[0]), newPlayer(f, ours())
	f.Fuzz(func(t *testing.T, program []byte, ask byte) {
		if len(program) > 40 {
			t.Skip()
		}
		s, o := std.play(t, program, ask), our.play(t, program, ask)
		if s != o {
			t.Fatalf("%q %q\nnet/http: %.2000s\nours:     %.2000s", asks(ask), program, s, o)
		}
	})
}

// asks are the requests to which the program is the answer.
func asks(n byte) string {
	all := []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	}
	return all[int(n)%len(all)]
}

// player is a server whose handler plays programs.
type player struct {
	*site
	mu      sync.Mutex
	program []byte
	log     strings.Builder // what the handler was told
	beyond  bool            // it wrote more than it had announced
}

func newPlayer(f *testing.F, k kind) *player {
	p := &player{}
	p.site = serveWith(f, k, h1.ServerConfig{Handler: p})
	return p
}

// ServeHTTP plays the program, except for the second request.
func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/again" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	final := false // the status is said
	for i := 0; i+1 < len(p.program); i += 2 {
		n := int(p.program[i+1])
		switch what := p.program[i] % 9; what {
		case 0, 1, 8:
			if what == 1 {
				n *= 300
			}
			if n == 0 {
				continue
			}
			final = true
			p.write(w, r, strings.Repeat("x", n), what == 8)
		case 2:
			final = true
			w.(http.Flusher).Flush()
		case 3:
			status := []int{200, 201, 204, 304, 404, 500, 103, 599}[n%8]
			w.WriteHeader(status)
			final = final || status >= 200
		case 7:
			if b, err := io.ReadAll(r.Body); !final && (err != nil || len(b) != 5 && len(b) != 0) {
				fmt.Fprintf(&p.log, "body %q %v;", b, err)
			}
		default: // a header, which is none after the status
			if final {
				continue
			}
			switch what {
			case 4:
				w.Header().Add("X-A", fmt.Sprint(n))
			case 5:
				w.Header().Set("Content-Length", fmt.Sprint(n))
			case 6:
				w.Header().Set("Connection", "close")
			}
		}
	}
}

// write notes what the handler is told, but for HEAD, where nothing counts.
func (p *player) write(w http.ResponseWriter, r *http.Request, s string, copied bool) {
	if p.beyond {
		return // net/http counts what it refused, too
	}
	var err error
	if copied {
		_, err = io.Copy(w, strings.NewReader(s))
	} else {
		_, err = io.WriteString(w, s)
	}
	p.beyond = errors.Is(err, http.ErrContentLength)
	if r.Method != http.MethodHead {
		fmt.Fprintf(&p.log, "write %v;", err)
	}
}

// play returns all that matters of the answer, and whether another followed.
func (p *player) play(t *testing.T, program []byte, ask byte) string {
	p.mu.Lock()
	p.program, p.beyond = program, false
	p.log.Reset()
	p.mu.Unlock()
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(c, asks(ask)+"GET /again HTTP/1.1\r\nHost: a\r\n\r\n")
	_ = c.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(c)
	if isTimeout(err) {
		t.Fatalf("does not end: %q %q", asks(ask), program)
	}
	br := bufio.NewReader(bytes.NewReader(all))
	method, _, _ := strings.Cut(asks(ask), " ")
	a, err := readAnswer(br, method)
	if err != nil {
		t.Fatalf("%q: %v", all, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := fmt.Sprintf("%s %d x %d %v %q; %s", a.Proto, a.StatusCode, len(a.body), a.bodyErr, a.Header["X-A"], p.log.String())
	if strings.Trim(a.body, "x") != "" || len(a.Header["Date"]) != 1 {
		t.Fatalf("%q", all)
	}
	if cl := a.Header.Get("Content-Length"); cl != "" && method != http.MethodHead && cl != strconv.Itoa(len(a.body)) && a.bodyErr == nil {
		t.Fatalf("length %s of %d", cl, len(a.body))
	}
	if p.beyond && method != http.MethodHead {
		return out // whether the connection is good any more is a matter of taste
	}
	_, err = readAnswer(br, "GET")
	if a.bodyErr == nil && (err == nil) == a.Close {
		t.Fatalf("says close %t, and the next: %v", a.Close, err)
	}
	if a.ProtoMinor == 0 {
		return out // who gathers more knows more lengths
	}
	return out + fmt.Sprintf("kept %t", err == nil)
}
