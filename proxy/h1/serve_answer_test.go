package h1_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// dated reports whether an answer has one date, and a true one.
func dated(h http.Header) bool {
	if len(h["Date"]) != 1 {
		return false
	}
	d, err := http.ParseTime(h.Get("Date"))
	return err == nil && time.Since(d).Abs() < time.Hour
}

// form is what an answer must look like.
type form struct {
	status int
	body   string
	header map[string]string // "" for none
	cut    bool              // the body ends before its end
	ends   bool              // the connection is closed after it
	any    bool              // whether it is, is nobody's business
}

func (want form) check(t *testing.T, a answer) {
	t.Helper()
	if a.StatusCode != want.status || a.body != want.body || (a.bodyErr != nil) != want.cut {
		t.Errorf("%d %.200q %v, want %d %.200q", a.StatusCode, a.body, a.bodyErr, want.status, want.body)
	}
	if !dated(a.Header) {
		t.Errorf("date %q", a.Header["Date"])
	}
	for name, v := range want.header {
		got := strings.Join(a.Header[http.CanonicalHeaderKey(name)], "|")
		switch name {
		case "transfer-encoding":
			got = strings.Join(a.TransferEncoding, "|")
		case "length":
			got = strconv.FormatInt(a.ContentLength, 10)
		}
		if got != v {
			t.Errorf("%s is %q, want %q", name, got, v)
		}
	}
	if a.Close != want.ends && !want.cut {
		t.Errorf("close %t: %v", a.Close, a.Header)
	}
}

// TestAnswers asks each handler, in HTTP/1.1 and with the connection to be kept
// unless the request says otherwise.
func TestAnswers(t *testing.T) {
	flush := func(w http.ResponseWriter) { w.(http.Flusher).Flush() }
	say := func(w http.ResponseWriter, s string) {
		if n, err := io.WriteString(w, s); n != len(s) || err != nil {
			t.Errorf("%d of %d written: %v", n, len(s), err)
		}
	}
	refused := func(w http.ResponseWriter, s string, want error) {
		if n, err := w.Write([]byte(s)); n != 0 || !errors.Is(err, want) {
			t.Errorf("%d %v, want %v", n, err, want)
		}
	}
	large := strings.Repeat("0123456789abcdef", 20<<10)
	type header = map[string]string
	const get, head, get10, kept10 = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
	for _, tt := range []struct {
		name, ask string
		do        func(w http.ResponseWriter)
		want      form
	}{
		{"nothing", get, func(http.ResponseWriter) {}, form{status: 200, header: header{"Content-Length": "0", "transfer-encoding": ""}}},
		{"status only", get, func(w http.ResponseWriter) { w.WriteHeader(404) }, form{status: 404, header: header{"Content-Length": "0"}}},
		{"status without a name", get, func(w http.ResponseWriter) { w.WriteHeader(599) }, form{status: 599}},
		{"headers only", get, func(w http.ResponseWriter) { w.Header().Add("x-a", "1"); w.Header().Add("X-A", "2") }, form{status: 200, header: header{"X-A": "1|2", "Content-Length": "0"}}},
		{"small", get, func(w http.ResponseWriter) { say(w, "hello") }, form{status: 200, body: "hello", header: header{"Content-Length": "5", "transfer-encoding": ""}}},
		{"in parts", get, func(w http.ResponseWriter) { say(w, "he"); say(w, ""); say(w, "llo") }, form{status: 200, body: "hello", header: header{"Content-Length": "5"}}},
		{"empty write", get, func(w http.ResponseWriter) { say(w, ""); w.WriteHeader(404) }, form{status: 200, header: header{"Content-Length": "0"}}},
		{"large", get, func(w http.ResponseWriter) { say(w, large) }, form{status: 200, body: large}},
		{"large in parts", get, func(w http.ResponseWriter) {
			for i := 0; i < len(large); i += 1000 {
				say(w, large[i:min(len(large), i+1000)])
			}
		}, form{status: 200, body: large}},
		{"large with its length", get, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			say(w, large[:1])
			say(w, large[1:])
		}, form{status: 200, body: large, header: header{"length": strconv.Itoa(len(large)), "transfer-encoding": ""}}},
		{"copied", get, func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader(large)) }, form{status: 200, body: large}},
		{"flushed before it is written", get, func(w http.ResponseWriter) { flush(w); say(w, "hello") }, form{status: 200, body: "hello", header: header{"Content-Length": "", "transfer-encoding": "chunked"}}},
		{"flushed only", get, func(w http.ResponseWriter) { w.Header().Set("X-A", "b"); flush(w); flush(w) }, form{status: 200, header: header{"X-A": "b", "transfer-encoding": "chunked"}}},
		{"flushed with a length", get, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "5"); flush(w); say(w, "hello") }, form{status: 200, body: "hello", header: header{"Content-Length": "5", "transfer-encoding": ""}}},
		{"flushed in 1.0", get10, func(w http.ResponseWriter) { say(w, "he"); flush(w); say(w, "llo") }, form{status: 200, body: "hello", ends: true, header: header{"Content-Length": "", "transfer-encoding": ""}}},
		{"flushed in 1.0 that would be kept", kept10, func(w http.ResponseWriter) { flush(w); say(w, "hello") }, form{status: 200, body: "hello", ends: true, header: header{"transfer-encoding": ""}}},
		{"small in 1.0", get10, func(w http.ResponseWriter) { say(w, "hello") }, form{status: 200, body: "hello", ends: true}},
		{"small in 1.0 that is kept", kept10, func(w http.ResponseWriter) { say(w, "hello") }, form{status: 200, body: "hello", header: header{"Content-Length": "5"}}},
		{"large in 1.0 that would be kept", kept10, func(w http.ResponseWriter) { say(w, large) }, form{status: 200, body: large, ends: true}},
		{"HEAD", head, func(w http.ResponseWriter) { say(w, "hello") }, form{status: 200}},
		{"HEAD of nothing", head, func(w http.ResponseWriter) {}, form{status: 200}},
		{"HEAD with a length", head, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "77") }, form{status: 200, header: header{"length": "77"}}},
		{"HEAD of a stream", head, func(w http.ResponseWriter) { say(w, "he"); flush(w); say(w, "llo") }, form{status: 200}},
		{"HEAD of much", head, func(w http.ResponseWriter) { say(w, large) }, form{status: 200}},
		{"204", get, func(w http.ResponseWriter) { w.WriteHeader(204); refused(w, "x", http.ErrBodyNotAllowed) }, form{status: 204, header: header{"Content-Length": "", "transfer-encoding": ""}}},
		{"204 flushed", get, func(w http.ResponseWriter) { w.WriteHeader(204); flush(w) }, form{status: 204, header: header{"Content-Length": "", "transfer-encoding": ""}}},
		{"304", get, func(w http.ResponseWriter) {
			w.Header().Set("Etag", "x")
			w.WriteHeader(304)
			refused(w, "x", http.ErrBodyNotAllowed)
		}, form{status: 304, header: header{"Etag": "x", "transfer-encoding": ""}}},
		{"too short", get, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); say(w, "hello") }, form{status: 200, body: "hello", cut: true, ends: true}},
		{"far too short", get, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9") }, form{status: 200, cut: true, ends: true}},
		{"too long at once", get, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "3")
			refused(w, "hello", http.ErrContentLength)
		}, form{status: 200, cut: true, ends: true}},
		{"too long at last", get, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "5")
			say(w, "hello")
			if _, err := w.Write([]byte("!")); !errors.Is(err, http.ErrContentLength) {
				t.Errorf("%v", err)
			}
		}, form{status: 200, body: "hello", any: true}},
		{"two statuses", get, func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(500); say(w, "a") }, form{status: 201, body: "a"}},
		{"status after the body", get, func(w http.ResponseWriter) { say(w, "a"); w.WriteHeader(500) }, form{status: 200, body: "a"}},
		{"header after the status", get, func(w http.ResponseWriter) {
			w.Header().Set("X-A", "1")
			w.WriteHeader(200)
			w.Header().Set("X-A", "2")
			w.Header().Set("X-B", "2")
			w.Header().Set("Content-Length", "1")
			say(w, "hello")
		}, form{status: 200, body: "hello", header: header{"X-A": "1", "X-B": ""}}},
		{"header after the body", get, func(w http.ResponseWriter) { say(w, "hello"); w.Header().Set("X-B", "2") }, form{status: 200, body: "hello", header: header{"X-B": ""}}},
		{"early hints", get, func(w http.ResponseWriter) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			w.WriteHeader(201)
			say(w, "a")
		}, form{status: 201, body: "a", header: header{"Link": "</a>"}}},
		{"handler closes", get, func(w http.ResponseWriter) { w.Header().Set("Connection", "close"); say(w, "a") }, form{status: 200, body: "a", ends: true}},
		{"handler keeps", get, func(w http.ResponseWriter) { w.Header().Set("Connection", "keep-alive"); say(w, "a") }, form{status: 200, body: "a"}},
		{"handler keeps what the client closes", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", func(w http.ResponseWriter) { w.Header().Set("Connection", "keep-alive"); say(w, "a") },
			form{status: 200, body: "a", ends: true}},
		{"handler chunks", get, func(w http.ResponseWriter) { w.Header().Set("Transfer-Encoding", "chunked"); say(w, "hello") }, form{status: 200, body: "hello"}},
		{"handler chunks with a length", get, func(w http.ResponseWriter) {
			w.Header().Set("Transfer-Encoding", "chunked")
			w.Header().Set("Content-Length", "5")
			say(w, "hello")
		}, form{status: 200, body: "hello"}},
		{"handler's length is no number", get, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "five"); say(w, "hello") }, form{status: 200, body: "hello"}},
		{"handler's length is negative", get, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "-5"); say(w, "hello") }, form{status: 200, body: "hello"}},
		{"several goroutines, one after the other", get, func(w http.ResponseWriter) {
			for i := range 20 {
				var wg sync.WaitGroup
				wg.Go(func() { fmt.Fprintf(w, "%d,", i); flush(w) })
				wg.Wait()
			}
		}, form{status: 200, body: "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/again" {
						echo(w, r)
						return
					}
					tt.do(w)
				})
				w := s.connect(t)
				w.say(tt.ask)
				method, _, _ := strings.Cut(tt.ask, " ")
				tt.want.check(t, w.hear(method))
				if tt.want.ends {
					w.ended()
				} else if !tt.want.any {
					w.works()
				}
			})
		})
	}
}

// TestDateOfTheHandler: the handler's date is the only one, and none if it wants none.
func TestDateOfTheHandler(t *testing.T) {
	both(t, func(t *testing.T, k kind) {
		s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/none" {
				w.Header()["Date"] = nil
				return
			}
			w.Header().Set("Date", "then")
		})
		w := s.connect(t)
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\n")
		if a := w.hear("GET"); fmt.Sprint(a.Header["Date"]) != "[then]" {
			t.Errorf("%q", a.Header["Date"])
		}
		if a := w.hear("GET"); len(a.Header["Date"]) != 0 {
			t.Errorf("%q", a.Header["Date"])
		}
	})
}

// TestNoGuesses: our server does not guess a type.
func TestNoGuesses(t *testing.T) {
	s := serve(t, ours(), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	w := s.connect(t)
	w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if a := w.hear("GET"); a.Header["Content-Type"] != nil || len(a.Header) != 2 {
		t.Errorf("%v", a.Header)
	}
}

// TestFlushArrives: what was flushed is there before the handler goes on.
func TestFlushArrives(t *testing.T) {
	for _, proto := range []string{"1.1", "1.0"} {
		t.Run(proto, func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				next := make(chan struct{})
				defer close(next)
				s := serve(t, k, func(w http.ResponseWriter, r *http.Request) {
					rc := http.NewResponseController(w)
					for i := range 20 {
						fmt.Fprintf(w, "data: %d\n\n", i)
						if err := rc.Flush(); err != nil {
							t.Errorf("flush %d: %v", i, err)
						}
						<-next
					}
				})
				w := s.connect(t)
				w.say("POST / HTTP/" + proto + "\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
				resp, err := http.ReadResponse(w.br, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 20 {
					want := fmt.Sprintf("data: %d\n\n", i)
					b := make([]byte, len(want))
					if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != want {
						t.Fatalf("%q %v", b, err)
					}
					next <- struct{}{}
				}
				if b, err := io.ReadAll(resp.Body); len(b) > 0 || err != nil {
					t.Errorf("%q %v", b, err)
				}
			})
		})
	}
}

// TestAnswerIsOver: who keeps the writer and the body beyond the handler's
// return gets errors, and disturbs nobody.
func TestAnswerIsOver(t *testing.T) {
	kept := make(chan func(), 1)
	s := serve(t, ours(), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/again" {
			echo(w, r)
			return
		}
		kept <- func() {
			<-r.Context().Done()
			if n, err := w.Write([]byte("more")); n != 0 || err == nil {
				t.Errorf("%d written", n)
			}
			w.WriteHeader(500)
			if http.NewResponseController(w).Flush() == nil {
				t.Error("flushed")
			}
			if n, err := r.Body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("%d read, %v", n, err)
			}
		}
		_, _ = io.WriteString(w, "done")
	})
	w := s.connect(t)
	for range 3 {
		w.say("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
		if a := w.hear("POST"); a.body != "done" || a.Close {
			t.Errorf("%q %v", a.body, a.Header)
		}
		(<-kept)()
		w.works()
	}
}

// TestOneWrite: a small answer is one packet, head and body.
func TestOneWrite(t *testing.T) {
	s := serve(t, ours(), echo)
	w := s.connect(t)
	for range 20 {
		w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		b := make([]byte, 4<<10)
		n, err := w.Read(b)
		if err != nil || !strings.Contains(string(b[:n]), "\r\n\r\nGET / ") {
			t.Fatalf("%q %v", b[:n], err)
		}
	}
}

// TestLentHeader: a map of headers can be lent for an answer, which joins what was
// set before, is read once and left alone.
func TestLentHeader(t *testing.T) {
	for name, before := range map[string]http.Header{"alone": {}, "after another": {"X-Before": {"b"}}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, ours(), func(w http.ResponseWriter, _ *http.Request) {
				for k, vv := range before {
					w.Header()[k] = vv
				}
				lent := http.Header{"X-Lent": {"1"}, "Content-Length": {"5"}}
				w.(interface{ LendHeader(http.Header) }).LendHeader(lent)
				w.WriteHeader(201)
				w.Header().Set("X-Late", "1")
				lent.Set("X-Lent", "2")
				_, _ = io.WriteString(w, "hello")
				if len(lent) != 2 {
					t.Errorf("the lent map has become %v", lent)
				}
			})
			c := s.connect(t)
			c.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			a := c.hear("GET")
			if a.StatusCode != 201 || a.body != "hello" || a.Header.Get("X-Lent") != "1" || a.Header.Get("X-Late") != "" || a.Header.Get("X-Before") != before.Get("X-Before") {
				t.Errorf("%d %q %v", a.StatusCode, a.body, a.Header)
			}
		})
	}
}
