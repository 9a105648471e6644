package h1_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestInjection: whatever a handler puts into its headers, there is one answer
// with one body, and what follows is the next answer.
func TestInjection(t *testing.T) {
	evil := "a\r\nX-Injected: b\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	headers := map[string]http.Header{
		"value":                {"X-A": {evil}},
		"value, LF":            {"X-A": {strings.ReplaceAll(evil, "\r", "")}},
		"value, CR":            {"X-A": {strings.ReplaceAll(evil, "\n", "")}},
		"value that is a fold": {"X-A": {"\r\n b", "\n\tc"}},
		"value with a NUL":     {"X-A": {"a\x00b"}},
		"name":                 {evil: {"a"}},
		"name with a colon":    {"X-Injected: b\r\nX": {"a"}, "X-A:b": {"c"}},
		"name with a space":    {"X A": {"a"}, "X-B ": {"c"}, "": {"d"}},
		"known names":          {"Content-Type": {evil}, "Location": {evil}, "Date": {evil}},
		"connection":           {"Connection": {"keep-alive" + evil}},
		"names in small":       {"content-length": {"0"}, "transfer-encoding": {"gzip"}},
		"two lengths":          {"Content-Length": {"5", "0"}},
		"a list of lengths":    {"Content-Length": {"5, 0"}},
		"length":               {"Content-Length": {"5\r\nX-Injected: b"}},
		"length with a sign":   {"Content-Length": {"+5"}},
		"transfer encoding":    {"Transfer-Encoding": {"chunked" + evil}},
		"two encodings":        {"Transfer-Encoding": {"chunked", "gzip"}},
		"unknown encoding":     {"Transfer-Encoding": {"gzip"}},
		"identity":             {"Transfer-Encoding": {"identity"}},
		"trailer":              {"Trailer": {"X-Injected"}, "Trailer:X-Injected": {"b"}},
	}
	for name, h := range headers {
		for _, flushed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, flushed), func(t *testing.T) {
				s := serve(t, ours(), func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/again" {
						echo(w, r)
						return
					}
					for k, vv := range h {
						w.Header()[k] = vv
					}
					if flushed {
						w.(http.Flusher).Flush()
					}
					_, _ = io.WriteString(w, "hello")
				})
				w := s.connect(t)
				w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				a := w.hear("GET")
				if a.StatusCode != 200 || a.body != "hello" || a.bodyErr != nil || a.Header["X-Injected"] != nil || len(a.Header["Content-Length"]) > 1 {
					t.Errorf("%d %q %v %v", a.StatusCode, a.body, a.bodyErr, a.Header)
				}
				for k, vv := range a.Header {
					if strings.ContainsAny(k+strings.Join(vv, ""), "\r\n\x00") || strings.ContainsAny(k, " :") {
						t.Errorf("%q: %q", k, vv)
					}
				}
				if a.Close {
					w.ended()
				} else {
					w.works()
				}
			})
		}
	}
}

// TestPanics: a panic ends the connection at once, and says why in the log if
// it is not the one that asks for that.
func TestPanics(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w http.ResponseWriter)
		body string // what arrives before
		log  bool
	}{
		{"at once", func(http.ResponseWriter) { panic("oh no") }, "", true},
		{"with something written", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "lost"); panic("oh no") }, "", true},
		{"in a stream", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "a"); w.(http.Flusher).Flush(); panic("oh no") }, "a", true},
		{"abort", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "", false},
		{"abort in a stream", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "a", false},
		{"bad status", func(w http.ResponseWriter) { w.WriteHeader(0) }, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, k kind) {
				var log records
				s := serveWith(t, k, h1.ServerConfig{Log: log.logger(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tt.do(w) })})
				w := s.connect(t)
				w.say("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
				if tt.body != "" {
					if a := w.hear("GET"); a.body != tt.body || a.bodyErr == nil {
						t.Errorf("%q %v", a.body, a.bodyErr)
					}
				}
				w.ended()
				if tt.log {
					happens(t, "a log with the stack", func() bool { return strings.Contains(log.String(), "serve_injection_test.go") })
				} else if log.String() != "" {
					t.Error(log.String())
				}
				again := s.connect(t) // the server lives
				again.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			})
		})
	}
}
