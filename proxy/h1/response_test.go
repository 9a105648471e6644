package h1_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/h1"
)

func TestResponses(t *testing.T) {
	for _, tt := range []struct {
		name, method, raw string
		status            int
		body              string
		length            int64
		reused            bool // the connection serves the next request
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, true},
		{"length zero", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", 0, true},
		{"length twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, true},
		{"no reason", "GET", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, true},
		{"bare LF in the head", "GET", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", 200, "hello", 5, true},
		{"folded length", "GET", "HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\nhello", 200, "hello", 5, true},
		{"lower case", "GET", "HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nhello", 200, "hello", 5, true},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", 200, "hello", -1, true},
		{"chunked, size padded", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n005  \r\nhello\r\n000\r\n\r\n", 200, "hello", -1, true},
		{"chunked with trailers", "GET", "HTTP/1.1 200 OK\r\nTrailer: A\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nC: d\r\n\r\n", 200, "hello", -1, true},
		{"chunked empty", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", -1, true},
		{"chunked and length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200, "hello", -1, true},
		{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", -1, false},
		{"connection close", "GET", "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, false},
		{"1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, false},
		{"1.0 keep-alive", "GET", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, true},
		{"1.0 until close", "GET", "HTTP/1.0 200 OK\r\n\r\nhello", 200, "hello", -1, false},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, "", 5, true},
		{"HEAD chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "", -1, true},
		{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0, true},
		{"304 with length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "", 0, true},
		{"1xx first", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 5, true},
		{"error status", "POST", "HTTP/1.1 529 Overloaded\r\nContent-Length: 5\r\n\r\nhello", 529, "hello", 5, true},
		{"more than announced", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n", 200, "hello", 5, false},
	} {
		for _, piece := range []int{1 << 20, 1, 7} {
			t.Run(fmt.Sprintf("%s by %d", tt.name, piece), func(t *testing.T) {
				p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
					for readRequest(br) == nil {
						for raw := tt.raw; raw != ""; {
							n := min(len(raw), piece)
							if _, err := io.WriteString(c, raw[:n]); err != nil {
								return
							}
							raw = raw[n:]
							runtime.Gosched()
						}
						if strings.Contains(tt.name, "until close") {
							return
						}
					}
				})
				tr := newTransport(t, h1.Config{})
				for range 2 {
					resp, err := tr.RoundTrip(request(t, t.Context(), tt.method, p.url, nil))
					if err != nil {
						t.Fatal(err)
					}
					b, err := io.ReadAll(resp.Body)
					if err != nil || string(b) != tt.body || resp.StatusCode != tt.status || resp.ContentLength != tt.length {
						t.Fatalf("%d %q length %d %v", resp.StatusCode, b, resp.ContentLength, err)
					}
					if err := resp.Body.Close(); err != nil {
						t.Fatal(err)
					}
					if te := resp.Header["Transfer-Encoding"]; te != nil {
						t.Errorf("framing left in the header: %v", te)
					}
				}
				want := int32(2)
				if tt.reused {
					want = 1
				}
				if got := p.conns.Load(); got != want {
					t.Errorf("%d connections, want %d", got, want)
				}
				tr.CloseIdleConnections()
				p.gone(t)
			})
		}
	}
}

// What a response's Connection field names is known to the caller, also beside "close",
// which net/http takes away, and however the head comes.
func TestConnectionField(t *testing.T) {
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nconnection: X-Hop, close\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nConnection: X-Early\r\n\r\nHTTP/1.1 200 OK\nConnection: X-Hop\nConnection: Close\nContent-Length: 0\n\n",
		"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nContent-Length: 0\r\n\r\n",
	} {
		p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
			if readRequest(br) == nil {
				for i := range head {
					_, _ = io.WriteString(c, head[i:i+1])
				}
			}
		})
		resp, _ := get(t, newTransport(t, h1.Config{}), p.url)
		if got := strings.Join(resp.Header["Connection"], ", "); !strings.HasPrefix(got, "X-Hop") {
			t.Errorf("%q: Connection is %q", head, got)
		}
	}
}

func TestHeaders(t *testing.T) {
	p := listen(t, always("HTTP/1.1 200 Fine, thanks\r\nx-request-id:  a b\t\r\nSet-Cookie: 1\r\nset-cookie: 2\r\nX-Empty:\r\nx_odd!: v\r\nX-Long: a\r\n\tb\r\n  c\r\nX-Latin: \xe9\r\nContent-Length: 0\r\n\r\n"))
	resp, _ := get(t, newTransport(t, h1.Config{}), p.url)
	want := map[string]string{"X-Request-Id": "[a b]", "Set-Cookie": "[1 2]", "X-Empty": "[]", "X_odd!": "[v]", "X-Latin": "[\xe9]", "Content-Length": "[0]"}
	for k, v := range want {
		if got := fmt.Sprint(resp.Header[k]); got != v {
			t.Errorf("%s: %q, want %q", k, got, v)
		}
	}
	if got := strings.Join(strings.Fields(resp.Header.Get("X-Long")), " "); got != "a b c" {
		t.Errorf("folded: %q", got)
	}
	if resp.Status != "200 Fine, thanks" || resp.Proto != "HTTP/1.1" || !resp.ProtoAtLeast(1, 1) || resp.Request == nil {
		t.Errorf("%q %q", resp.Status, resp.Proto)
	}
	resp.Header.Add("X-Request-Id", "other")
	if got := resp.Header["Set-Cookie"][0]; got != "1" {
		t.Errorf("an append reached the neighbour: %q", got)
	}
}

func TestMalformedHead(t *testing.T) {
	for name, raw := range map[string]string{
		"garbage":             "garbage\r\n\r\n",
		"HTTP/2":              "HTTP/2.0 200 OK\r\n\r\n",
		"no status":           "HTTP/1.1 \r\n\r\n",
		"status of 2":         "HTTP/1.1 20\r\n\r\n",
		"status of 4":         "HTTP/1.1 2000 OK\r\n\r\n",
		"status below 100":    "HTTP/1.1 099 OK\r\n\r\n",
		"signed status":       "HTTP/1.1 +20 OK\r\n\r\n",
		"leading line":        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"no colon":            "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
		"no name":             "HTTP/1.1 200 OK\r\n: v\r\n\r\n",
		"folded status":       "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
		"NUL in value":        "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
		"CR in value":         "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
		"non-ASCII name":      "HTTP/1.1 200 OK\r\n\xc3\xa9: b\r\n\r\n",
		"negative length":     "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
		"signed length":       "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
		"huge length":         "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"list of lengths":     "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
		"empty length":        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello",
		"two lengths":         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"unknown encoding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"two encodings":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"switching protocols": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := listen(t, once(raw))
			_, err := newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
			var head *h1.HeaderError
			if !errors.As(err, &head) {
				t.Fatalf("%T %v", err, err)
			}
			p.gone(t)
		})
	}
}

func TestCutHead(t *testing.T) {
	whole := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	for n := range len(whole) {
		p := listen(t, once(whole[:n]))
		_, err := newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
		var head *h1.HeaderError
		var before *h1.BeforeResponseError
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &before) != (n == 0) || errors.As(err, &head) != (n > 0) {
			t.Fatalf("after %d bytes: %T %v", n, err, err)
		}
	}
}

func TestBadBodies(t *testing.T) {
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		name, raw string
		got       string
		is        error
	}{
		{"cut length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "hello", io.ErrUnexpectedEOF},
		{"cut in chunk", chunked + "9\r\nhello", "hello", io.ErrUnexpectedEOF},
		{"cut after chunk", chunked + "5\r\nhello", "hello", io.ErrUnexpectedEOF},
		{"cut after CRLF", chunked + "5\r\nhello\r\n", "hello", io.ErrUnexpectedEOF},
		{"cut after the last chunk", chunked + "5\r\nhello\r\n0\r\n", "hello", io.ErrUnexpectedEOF},
		{"cut in trailer", chunked + "5\r\nhello\r\n0\r\nA: b", "hello", io.ErrUnexpectedEOF},
		{"chunk too long", chunked + "4\r\nhello\r\n0\r\n\r\n", "hell", nil},
		{"no size", chunked + "\r\nhello", "", nil},
		{"bad size", chunked + "5x\r\nhello", "", nil},
		{"space in size", chunked + "5 5\r\nhello", "", nil},
		{"signed size", chunked + "-5\r\nhello", "", nil},
		{"0x size", chunked + "0x5\r\nhello", "", nil},
		{"huge size", chunked + "fffffffffffffffff\r\nhello", "", nil},
		{"negative by overflow", chunked + "ffffffffffffffff\r\nhello", "hello", nil},
		{"bare LF", chunked + "5\nhello\r\n0\r\n\r\n", "", nil},
		{"endless size line", chunked + "5;" + strings.Repeat("x", 8<<10), "", nil},
		{"endless trailer line", chunked + "0\r\nA: " + strings.Repeat("x", 8<<10), "", nil},
		{"endless trailers", chunked + "0\r\n" + strings.Repeat("A: "+strings.Repeat("x", 1000)+"\r\n", 300), "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := listen(t, once(tt.raw))
			resp, err := newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			var body *h1.BodyError
			if string(b) != tt.got || !errors.As(err, &body) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Fatalf("%q %T %v", b, err, err)
			}
			if _, again := resp.Body.Read(make([]byte, 1)); again != err {
				t.Errorf("second error: %v", again)
			}
			_ = resp.Body.Close()
		})
	}
}

func TestEndlessHeads(t *testing.T) {
	for name, unit := range map[string]string{
		"one header":  "x",
		"headers":     "A: b\r\n",
		"status":      "",
		"information": "\r\nHTTP/1.1 102 Processing\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			written := 0
			p := listen(t, func(_ int, c net.Conn, br *bufio.Reader) {
				_ = readRequest(br)
				start := "HTTP/1.1 102 Processing\r\n"
				if unit == "" {
					start = "HTTP/1.1 200 "
				}
				_, err := io.WriteString(c, start)
				for piece := strings.Repeat(cmp.Or(unit, "x"), 1000); err == nil; {
					var n int
					n, err = io.WriteString(c, piece)
					written += n
				}
			})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := newTransport(t, h1.Config{}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
			runtime.ReadMemStats(&after)
			var head *h1.HeaderError
			if !errors.As(err, &head) || !errors.Is(err, h1.ErrHeaderTooLarge) {
				t.Fatalf("%T %v", err, err)
			}
			if d := after.TotalAlloc - before.TotalAlloc; d > 16<<20 {
				t.Errorf("%d bytes allocated", d)
			}
			p.gone(t)
			t.Logf("the server wrote %d bytes", written)
		})
	}
}

func TestHeaderLimitIsExact(t *testing.T) {
	for _, limit := range []int{100, 4 << 10, 5000, 64 << 10} {
		head := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: "
		head += strings.Repeat("x", limit-len(head)-4) + "\r\n\r\n"
		p := listen(t, always(head+"ok"))
		if _, body := get(t, newTransport(t, h1.Config{MaxHeaderBytes: limit}), p.url); body != "ok" {
			t.Errorf("limit %d: %q", limit, body)
		}
		_, err := newTransport(t, h1.Config{MaxHeaderBytes: limit - 1}).RoundTrip(request(t, t.Context(), "GET", p.url, nil))
		if !errors.Is(err, h1.ErrHeaderTooLarge) {
			t.Errorf("limit %d: %v", limit-1, err)
		}
	}
}

func TestClosingBodies(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	for _, tt := range []struct {
		name, raw string
		kept      bool
	}{
		{"rest has arrived", head + "hello", true},
		{"rest of chunks has arrived", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n2\r\nxx\r\n0\r\n\r\n", true},
		{"rest is missing", head + "h", false},
		{"last chunk is missing", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := listen(t, always(tt.raw))
			tr := newTransport(t, h1.Config{})
			resp, err := tr.RoundTrip(request(t, t.Context(), "GET", p.url, nil))
			if err != nil {
				t.Fatal(err)
			}
			if n, err := resp.Body.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			for range 2 {
				if err := resp.Body.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
				t.Errorf("read after close: %v", err)
			}
			if kept := tr.IdleConns() == 1; kept != tt.kept {
				t.Errorf("kept: %v", kept)
			}
			if !tt.kept {
				p.gone(t)
			}
		})
	}
}
