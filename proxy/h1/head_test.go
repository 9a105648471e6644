package h1

import (
	"bytes"
	"net/http"
	"testing"
)

// A control byte is seen wherever it is, and nothing else is taken for one.
func TestValidValue(t *testing.T) {
	for _, around := range []byte{' ', '\t', '~', 0x80, 0xff} {
		for c := range 256 {
			for at := range 19 {
				v := bytes.Repeat([]byte{around}, 19)
				v[at] = byte(c)
				if want := c >= ' ' && c != 0x7f || c == '\t'; validValue(v) != want {
					t.Fatalf("byte %#x at %d of %q: not %v", c, at, v, want)
				}
			}
		}
	}
}

// Names are what RFC 9110 calls tokens, and get the library's spelling.
func TestNames(t *testing.T) {
	const others = "!#$%&'*+-.^_`|~0123456789"
	for c := range 256 {
		name := "x" + string([]byte{byte(c)}) + "Yz-w"
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		want := letter || bytes.IndexByte([]byte(others), byte(c)) >= 0
		if validToken(name) != want {
			t.Errorf("%q as a name: not %v", name, want)
		}
		line := []byte(name + ": v")
		if got := canonicalLine(line); got != (want || c == ':') {
			t.Errorf("%q as a line: %v", line, got)
		} else if want && string(line[:len(name)]) != http.CanonicalHeaderKey(name) {
			t.Errorf("%q became %q", name, line)
		}
	}
}

// A byte that may not be in a name is seen wherever it is.
func TestLongNames(t *testing.T) {
	for length := 1; length < 28; length++ {
		for at := range length {
			for c := range 256 {
				name := []byte("X-Some-Name-AZaz-of-letters-"[:length])
				name[at] = byte(c)
				want := true
				for _, c := range name {
					want = want && token(c)
				}
				if validToken(string(name)) != want {
					t.Fatalf("%q as a name: not %v", name, want)
				}
			}
		}
	}
}

// What is omitted is not sent, not even where it would not be valid.
func TestOmit(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "http://host/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Connection": {"close"}, "X-Own": {"a\nb"}, "X-Sent": {"1"}}
	var o outgoing
	if err := o.encode(req, "GET / HTTP/1.1\r\nHost: host\r\n", nil, func(name string) bool { return name != "X-Sent" }); err != nil {
		t.Fatal(err)
	}
	if want := "GET / HTTP/1.1\r\nHost: host\r\nX-Sent: 1\r\n\r\n"; string(o.buf) != want || o.close {
		t.Errorf("%q, close %v", o.buf, o.close)
	}
}
