package h1

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A name is judged by its bytes, wherever they are and however many.
func TestValidToken(t *testing.T) {
	if validToken("") {
		t.Error("the empty name is valid")
	}
	for n := 1; n <= 33; n++ {
		for at := range n {
			for c := range 256 {
				for _, other := range []byte("a-Zz0") {
					b := []byte(strings.Repeat(string(other), n))
					b[at] = byte(c)
					if got := validToken(string(b)); got != token(byte(c)) {
						t.Fatalf("%q: %v", b, got)
					}
				}
			}
		}
	}
}

// A request begins as its own method, URL and host say, whatever came before
// it, even if the caller changed that in the same URL.
func TestOpening(t *testing.T) {
	req := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "a"}}
	tr := &Transport{}
	for name, change := range map[string]func(){
		"nothing":     func() {},
		"method":      func() { req.Method = "POST" },
		"host":        func() { req.Host = "b" },
		"path":        func() { req.URL.Path = "/p q" },
		"raw path":    func() { req.URL.RawPath = "/p%20q" },
		"query":       func() { req.URL.RawQuery = "x=y" },
		"force query": func() { req.URL.RawQuery, req.URL.ForceQuery = "", true },
		"opaque":      func() { req.URL.Opaque = "//c/d" },
		"authority":   func() { req.URL.Host = "e:1" },
		"scheme":      func() { req.URL.Scheme = "https" },
	} {
		change()
		for range 2 { // made, then remembered
			got, err := tr.opening(req)
			if err != nil {
				t.Fatal(err)
			}
			want, err := new(Transport).opening(req)
			if err != nil {
				t.Fatal(err)
			}
			if got.head != want.head || got.key != want.key {
				t.Errorf("%s changed: %q to %v, want %q to %v", name, got.head, got.key, want.head, want.key)
			}
		}
	}
	if a, _ := tr.opening(req); a == nil || tr.last.Load() != a {
		t.Error("nothing is remembered")
	}
	for name, bad := range map[string]func(*http.Request){
		"scheme": func(r *http.Request) { r.URL.Scheme = "ftp" },
		"method": func(r *http.Request) { r.Method = "a b" },
		"host":   func(r *http.Request) { r.Host = "a b" },
		"URL":    func(r *http.Request) { r.URL = nil },
	} {
		r := *req
		r.URL = &url.URL{Scheme: "http", Host: "a"}
		bad(&r)
		if o, err := tr.opening(&r); err == nil {
			t.Errorf("%s: %q", name, o.head)
		}
	}
	long := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "a", RawQuery: strings.Repeat("x", maxOpening)}}
	if o, err := tr.opening(long); err != nil || tr.last.Load() == o {
		t.Errorf("%v, or a long one is remembered", err)
	}
}
