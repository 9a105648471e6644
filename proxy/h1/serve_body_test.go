package h1_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestRequestFields: a handler is given what net/http would give it.
func TestRequestFields(t *testing.T) {
	asks := []string{
		"GET /a%2fb?c=d&e HTTP/1.1\r\nhost: Example.com:80\r\nuser-agent: x\r\nX-a-B: 1\r\nx-A-b:\t2 \r\nACCEPT:\r\n\r\n",
		"POST http://b:81/p?q HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nConnection: TE\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		"GET //a/../b?? HTTP/1.0\r\nX-Pragma: no-cache\r\nConnection: keep-alive\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\nCookie: c=d\r\nX_under: 1\r\nContent-Length: 0\r\n\r\n",
		"GET http://u:p@b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
		"GET /\xe4%41?\xe4 HTTP/1.1\r\nHost: \r\nX-A: \xe4\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
	}
	for i, ask := range asks {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var said []string
			for _, k := range kinds() {
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					if host, _, err := net.SplitHostPort(r.RemoteAddr); err != nil || host != "127.0.0.1" {
						t.Errorf("remote address %q", r.RemoteAddr)
					}
					if r.Body == nil || r.TLS != nil || r.MultipartForm != nil || r.Context().Err() != nil || r.Response != nil {
						t.Errorf("%+v", r)
					}
					echo(w, r)
				})
				w := s.connect(t)
				w.say(ask)
				said = append(said, w.hear("GET").body)
			}
			if said[0] != said[1] {
				t.Errorf("net/http: %s\nours: %s", said[0], said[1])
			}
		})
	}
}

// TestHeadersAreTheRequests: no request sees or keeps what is another's.
func TestHeadersAreTheRequests(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		var kept []*http.Request
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) { kept = append(kept, r) })
		w := s.connect(t)
		for i := range 20 {
			w.say(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: h%d\r\nX-A: %s\r\nX-A: %d\r\n\r\n", i, i, strings.Repeat(fmt.Sprint(i%10), 100), i))
			w.hear("GET")
		}
		for i, r := range kept {
			r.Header["X-A"] = append(r.Header["X-A"], "more")
			want := []string{strings.Repeat(fmt.Sprint(i%10), 100), fmt.Sprint(i), "more"}
			if r.URL.Path != fmt.Sprintf("/%d", i) || r.Host != fmt.Sprintf("h%d", i) || !slices.Equal(r.Header["X-A"], want) || len(r.Header) != 1 {
				t.Errorf("%d: %s %s %v", i, r.URL, r.Host, r.Header)
			}
		}
	})
}

// TestBodyReading: how a body may be read.
func TestBodyReading(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	readAll := func(t *testing.T, r *http.Request, want string) {
		b, err := io.ReadAll(r.Body)
		if string(b) != want || err != nil {
			t.Errorf("%q %v", b, err)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, w http.ResponseWriter, r *http.Request)
	}{
		{"not at all", func(*testing.T, http.ResponseWriter, *http.Request) {}},
		{"a little", func(_ *testing.T, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 3))
		}},
		{"closed", func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
			if n, err := r.Body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("%d %v", n, err)
			}
		}},
		{"to its end and beyond", func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
			readAll(t, r, smuggled)
			for range 2 {
				if n, err := r.Body.Read(make([]byte, 9)); n != 0 || err != io.EOF {
					t.Errorf("%d %v", n, err)
				}
			}
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"byte by byte", func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
			var b []byte
			for p := make([]byte, 1); ; {
				n, err := r.Body.Read(p)
				b = append(b, p[:n]...)
				if err != nil {
					break
				}
			}
			if string(b) != smuggled {
				t.Errorf("%q", b)
			}
		}},
		{"by another goroutine", func(t *testing.T, _ http.ResponseWriter, r *http.Request) {
			done := make(chan struct{})
			go func() { defer close(done); readAll(t, r, smuggled) }()
			<-done
		}},
		{"after the answer began", func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "a")
			readAll(t, r, smuggled)
		}},
	} {
		for framing, body := range map[string]string{
			"sized":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(smuggled), smuggled),
			"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nA: b\r\n\r\n", len(smuggled), smuggled),
		} {
			t.Run(tt.name+"/"+framing, func(t *testing.T) {
				both(t, func(t *testing.T, k kind) {
					s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/again" {
							echo(w, r)
							return
						}
						if r.URL.Path != "/" {
							t.Errorf("%s %s was made of a body", r.Method, r.URL)
						}
						tt.do(t, w, r)
					})
					w := s.connect(t)
					w.say("POST / HTTP/1.1\r\nHost: a\r\n" + body)
					if a := w.hear("POST"); a.StatusCode != 200 || a.bodyErr != nil {
						t.Errorf("%d %v", a.StatusCode, a.bodyErr)
					} else if a.Close {
						t.Error("not kept, though the whole body has arrived")
						w.ended()
					} else {
						w.works()
					}
				})
			})
		}
	}
}

// TestBodyNeverRead: a body that is too large to be dropped, or that does not
// come, does not keep the client from reading its answer; and what comes of it
// later is no request.
func TestBodyNeverRead(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		for _, how := range []string{"all at once", "answer first"} {
			t.Run(how, func(t *testing.T) {
				if how == "answer first" && !k.ours {
					t.Skip("net/http waits for the body")
				}
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/" {
						t.Errorf("%s was made of a body", r.URL)
					}
					w.WriteHeader(413)
					_, _ = io.WriteString(w, "no")
				})
				w := s.connect(t)
				lines := strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", 30_000)
				w.say(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", len(lines)))
				sent := make(chan struct{})
				send := func() { defer close(sent); w.say(lines) }
				if how == "all at once" {
					go send()
				}
				a := w.hear("POST")
				if a.StatusCode != 413 || a.body != "no" || a.bodyErr != nil || !a.Close {
					t.Errorf("%d %q %v %v", a.StatusCode, a.body, a.bodyErr, a.Header)
				}
				if how == "answer first" {
					go send()
				}
				w.ended()
				comes(t, "the client is told by an error", sent)
			})
		}
	})
}

// TestContinue: "100 Continue" is for who reads.
func TestContinue(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/no" {
				w.WriteHeader(403)
				return
			}
			echo(w, r)
		})
		expect := func(path, proto, value string) *wire {
			w := s.connect(t)
			w.say("POST " + path + " " + proto + "\r\nHost: a\r\nConnection: keep-alive\r\nExpect: " + value + "\r\nContent-Length: 5\r\n\r\n")
			return w
		}
		for _, value := range []string{"100-continue", "100-Continue"} {
			w := expect("/", "HTTP/1.1", value)
			resp, err := http.ReadResponse(w.br, nil)
			if err != nil || resp.StatusCode != 100 || w.br.Buffered() != 0 {
				t.Fatalf("%v %v", resp, err)
			}
			w.say("hello")
			if a := w.hear("POST"); firstLine(a.body) != `POST / "hello"` || a.Close {
				t.Errorf("%q %v", a.body, a.Header)
			}
			w.works()
		}
		w := expect("/no", "HTTP/1.1", "100-continue")
		resp, err := http.ReadResponse(w.br, nil)
		if err != nil || resp.StatusCode != 403 || !resp.Close {
			t.Fatalf("%v %v", resp, err)
		}
		if !k.ours {
			w.say("hello") // net/http waits for it even now
		}
		w.ended()
		w = expect("/", "HTTP/1.0", "100-continue") // it does not know that
		w.say("hello")
		if resp, err := http.ReadResponse(w.br, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("%v %v", resp, err)
		}
	})
}

// TestBodyDeadline: a handler can bound how long it waits for a body, and the
// next one is not bound by that.
func TestBodyDeadline(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/again" {
				echo(w, r)
				return
			}
			rc := http.NewResponseController(w)
			if err := rc.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Error(err)
			}
			b, err := io.ReadAll(r.Body)
			if r.URL.Path == "/whole" {
				if err != nil || string(b) != "hello" {
					t.Errorf("%q %v", b, err)
				}
				time.Sleep(100 * time.Millisecond) // beyond the deadline
				return
			}
			if string(b) != "he" || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q %v", b, err)
			}
			w.WriteHeader(408)
		})
		w := s.connect(t)
		w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
		if a := w.hear("POST"); a.StatusCode != 408 || !a.Close {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
		w.ended()
		w = s.connect(t)
		w.say("POST /whole HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
		if a := w.hear("POST"); a.StatusCode != 200 {
			t.Errorf("%d", a.StatusCode)
		}
		time.Sleep(20 * time.Millisecond)
		w.works()
	})
}

// TestLargeExchange sends 5 MB and gets them back, in each framing.
func TestLargeExchange(t *testing.T) {
	large := make([]byte, 5<<20)
	for i := range large {
		large[i] = byte(i * i >> 8)
	}
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil || !bytes.Equal(b, large) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
			if r.URL.Path == "/sized" {
				w.Header().Set("Content-Length", fmt.Sprint(len(b)))
			}
			for len(b) > 0 {
				n, err := w.Write(b[:min(len(b), 100_000)])
				if err != nil {
					t.Error(err)
					return
				}
				b = b[n:]
			}
		})
		var chunked bytes.Buffer
		for i := 0; i < len(large); i += 12_345 {
			c := large[i:min(len(large), i+12_345)]
			fmt.Fprintf(&chunked, "%x\r\n%s\r\n", len(c), c)
		}
		chunked.WriteString("0\r\n\r\n")
		w := s.connect(t)
		for _, ask := range []string{
			fmt.Sprintf("POST /sized HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(large), large),
			"POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked.String(),
		} {
			go w.say(ask)
			if a := w.hear("POST"); a.body != string(large) || a.bodyErr != nil || a.Close {
				t.Errorf("%d bytes, %v %v", len(a.body), a.bodyErr, a.Header)
			}
		}
	})
}

// TestRefuse: the body of a refusal is the configuration's.
func TestRefuse(t *testing.T) {
	s := serveWith(t, ours(), h1.ServerConfig{Handler: http.HandlerFunc(echo), Refuse: func(status int, reason string) (string, []byte) {
		if reason == "" || strings.ContainsAny(reason, "\r\n") {
			t.Errorf("reason %q", reason)
		}
		return "application/json", fmt.Appendf(nil, `{"status":%d}`, status)
	}})
	for ask, status := range map[string]int{
		"G\r\n\r\n":                                                        400,
		"GET / HTTP/2.1\r\nHost: a\r\n\r\n":                                505,
		"GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n":                   417,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: b\r\n\r\n":        501,
		"GET / HTTP/1.1\r\nX: " + strings.Repeat("a", 80<<10) + "\r\n\r\n": 431,
	} {
		w := s.connect(t)
		w.say(ask)
		a := w.hear("GET")
		if a.StatusCode != status || a.body != fmt.Sprintf(`{"status":%d}`, status) || a.Header.Get("Content-Type") != "application/json" || !a.Close || a.ContentLength != int64(len(a.body)) {
			t.Errorf("%.40q: %d %q %v", ask, a.StatusCode, a.body, a.Header)
		}
		w.ended()
	}
}
