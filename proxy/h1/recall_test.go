package h1

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// readHeads reads heads from one connection until one is refused: what each of
// them was read as.
func readHeads(client bool, heads []string, sizes []byte) (all []string) {
	reads := newReads()
	in := &reader{src: &pieces{data: []byte(strings.Join(heads, "")), sizes: sizes}, reads: &reads, plain: client}
	k := &link{srv: NewServer(ServerConfig{MaxHeaderBytes: fuzzLimit})}
	for {
		raw, err := in.head(fuzzLimit)
		if err != nil {
			if err == io.EOF {
				return all
			}
			return append(all, err.Error())
		}
		length := len(raw)
		var is string
		if client {
			k.in.past = in.past
			var t *turn
			t, err = k.parse(raw)
			in.past = k.in.past
			if is = text(err); err == nil {
				r := &t.req
				is = fmt.Sprintf("%s %s %v %d %s %q %q %d %v %v", r.Method, r.RequestURI, r.URL, r.ProtoMinor, r.Host, r.Header, r.TransferEncoding, r.ContentLength, r.Close, t.body.payload.kind)
			}
		} else {
			var resp http.Response
			if err = in.response(raw, &resp); err == nil {
				var p payload
				var keep bool
				p, keep, err = frame(http.MethodGet, &resp)
				is = fmt.Sprintf("%q %d %d %q %d %v %v %d", resp.Status, resp.StatusCode, resp.ProtoMinor, resp.Header, resp.ContentLength, keep, p.kind, p.left)
			}
			if err != nil {
				is = err.Error()
			}
		}
		if all = append(all, is); err != nil {
			return all
		}
		in.r += length
	}
}

// compareHeads reads heads from one connection, and each from a fresh one: it
// must make no difference what was said before.
func compareHeads(t *testing.T, client bool, heads []string, sizes []byte) {
	t.Helper()
	got := readHeads(client, heads, sizes)
	var want []string
	for _, h := range heads {
		one := readHeads(client, []string{h}, nil)
		if want = append(want, one...); len(one) == 0 || !strings.Contains(one[len(one)-1], "map[") {
			break
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("client %v: %q\non one connection:     %q\neach on its own one:   %q", client, heads, got, want)
	}
}

// variants are heads like the first one, which clients and others might say next.
func variants(client bool) (base string, all []string) {
	base = "HTTP/1.1 200 OK\r\n"
	if client {
		base = "POST /v1/a?b HTTP/1.1\r\nHost: a\r\n"
	}
	first, _, _ := strings.Cut(base, "\r\n")
	base += "content-type: text/plain\r\nX-Two: 1\r\nAuthorization: Bearer one\r\nX-Two: 2\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"
	for _, c := range [][2]string{
		{"Length: 5", "Length: 50"}, {"Length: 5", "Length: 7"}, {"Length: 5", "Length: 5, 6"}, {"Length: 5", "Length: +5"}, {"Length: 5", "Length:"}, {"Length: 5", "Length:5"},
		{"Length: 5", "Length: \t5 "}, {"Length: 5", "Length: 5\r\nContent-Length: 6"}, {"Length: 5", "Length: 5\r\nContent-Length: 5"}, {"Length: 5", "Length: 5\r\nTransfer-Encoding: chunked"},
		{"Content-Length: 5", "Transfer-Encoding: chunked"}, {"Content-Length: 5", "Content-Lengt: 5"}, {"Content-Length: 5", "Content-Length : 5"}, {"Content-Length: 5", "content-length: 5"},
		{"Content-Length: 5", "CONTENT-LENGTH: 6"}, {"Content-Length: 5\r\n", ""}, {"Content-Length: 5\r\n", "Content-Length: 5\n"}, {"Length: 5\r\n", "Length: 5\r\n\r\n"},
		{"Length: 5\r\n", "Length: 5\r\n 6\r\n"}, {"Length: 5\r\n", "Length: 5\r\r\n"}, {"Length: 5", "Length: 5\x00"}, {"Length: 5", "Length: \r5"},
		{"keep-alive", "close"}, {"keep-alive", "keep-alive, close"}, {"keep-alive", "x"}, {"Connection: keep-alive\r\n", ""}, {"Connection: keep-alive\r\n", "\r\n"},
		{"alive\r\n\r\n", "alive\n\n"}, {"alive\r\n\r\n", "alive\r\n\n"}, {"alive\r\n\r\n", "alive\r\nX-New: 1\r\n\r\n"}, {"alive\r\n\r\n", "alive\r\n x\r\n\r\n"}, {"alive\r\n\r\n", "alive\r\n: x\r\n\r\n"},
		{"Bearer one", "Bearer two"}, {"Bearer one", "Bearer three"}, {"Bearer one", ""}, {"Bearer one", "Bearer \x7f"}, {"Bearer one", strings.Repeat("b", maxRecalled)},
		{"Authorization: Bearer one\r\n", ""}, {"Authorization: Bearer one\r\n", "X-Api-Key: b\r\n"}, {"Authorization: Bearer one\r\n", "Authorization: Bearer one\r\nCookie: c\r\n"},
		{"X-Two: 2", "X-Two: 3"}, {"X-Two: 2", "X-Three: 2"}, {"X-Two: 1\r\n", ""}, {"X-Two: 1\r\nAuthorization: Bearer one\r\nX-Two: 2", "X-Two: 2\r\nAuthorization: Bearer one\r\nX-Two: 1"},
		{"X-Two: 1\r\nAuthorization: Bearer one", "Authorization: Bearer one\r\nX-Two: 1"}, {"content-type", "Content-Type"}, {"text/plain\r\n", "text/plain\r\n\r\n"},
		{"Host: a", "Host: b"}, {"Host: a", "Host: a b"}, {"Host: a", "Host: a\r\nHost: a"}, {"Host: a\r\n", ""}, {"X-Two: 1", "Host: b"}, {"X-Two: 1", "Expect: 100-continue"}, {"X-Two: 1", "Trailer: x"},
		{first, "GET /v1/a?b HTTP/1.1"}, {first, "GET / HTTP/1.1"}, {first, "POST /v1/a/longer?b HTTP/1.1"}, {first, "HTTP/1.1 404 Not Found"}, {first, "POST /v1/c?b HTTP/1.1"}, {first, "POST /v1/a?b HTTP/1.0"}, {first, "POST /v1/a?b HTTP/1.2"}, {first, "POST  /v1/a?b HTTP/1.1"}, {first, ""},
		{first, "HTTP/1.1 404 No"}, {first, "HTTP/1.0 200 OK"}, {first, "HTTP/1.1 200\x00OK"}, {first, "HTTP/1.1 201 OK"}, {first + "\r\n", first + "\n"}, {first, strings.Repeat("A", len(first))},
	} {
		all = append(all, strings.Replace(base, c[0], c[1], 1))
	}
	for _, n := range []int{0, 1, maxRecallLines - 6, maxRecallLines, 60} {
		lines := ""
		for i := range n {
			lines += fmt.Sprintf("X-%d: v%d\r\n", i, i)
		}
		all = append(all, first+"\r\n"+lines+"\r\n", strings.Replace(base, "\r\n\r\n", "\r\n"+lines+"\r\n", 1))
	}
	return base, append(all, strings.Replace(base, "Bearer one", strings.Repeat("c", maxRecall), 1))
}

// A head is read as if it were the first of its connection, whatever came before.
func TestHeadsAreReadAlone(t *testing.T) {
	for _, client := range []bool{true, false} {
		base, all := variants(client)
		for _, v := range all {
			for _, heads := range [][]string{{v, v, v}, {base, v, v, base}, {base, base, v, base}, {base, base, v, v, v, base, v}, {base, base, base, v, base, base}} {
				compareHeads(t, client, heads, nil)
				compareHeads(t, client, heads, []byte{0})
				compareHeads(t, client, heads, []byte{40, 3, 90})
			}
		}
		for i, v := range all {
			w := all[(i*7+3)%len(all)]
			compareHeads(t, client, []string{v, v, w, v, w, w}, nil)
		}
	}
}

// What was learnt is used: nothing is made of a head that is the last one again
// but its map, and of one with another length only that. A connection with a
// single message remembers nothing.
func TestHeadsAreRemembered(t *testing.T) {
	head := "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\naccept: application/json\r\nauthorization: Bearer one\r\ncontent-length: %d\r\n\r\n"
	var past recall
	var slab [20]string
	read := func(n int) fields {
		raw := fmt.Appendf(nil, head, n)
		past.match(raw)
		f, err := past.head(raw, slab[:], 0, true)
		if err != nil || f.header.Get("Content-Length") != fmt.Sprint(n) || len(f.hosts) != 1 || len(f.header) != 3 {
			t.Fatalf("%v %v", f, err)
		}
		return f
	}
	if read(1); past.last != nil {
		t.Error("a single head is remembered")
	}
	read(1)
	raw := fmt.Appendf(nil, head, 1)
	same := testing.AllocsPerRun(100, func() { past.match(raw); _, _ = past.head(raw, slab[:], 0, true) })
	raw = fmt.Appendf(nil, head, 1234)
	other := testing.AllocsPerRun(100, func() { past.match(raw); _, _ = past.head(raw, slab[:], 0, true) })
	if same > 2 || other > 3 { // a small map is two
		t.Errorf("%v allocations for the same head, %v for another length", same, other)
	}
}

// A head that is like the last one is bounded like any other.
func TestRememberedHeadsAreBounded(t *testing.T) {
	head := "POST / HTTP/1.1\r\nHost: a\r\nX-A: %s\r\n\r\n"
	heads := fmt.Sprintf(head, "1") + fmt.Sprintf(head, "2") + fmt.Sprintf(head, "3") + fmt.Sprintf(head, "four")
	reads := newReads()
	in := &reader{src: strings.NewReader(heads), reads: &reads, plain: true}
	for i := range 4 {
		if n := in.past.match(fmt.Appendf(nil, head, strings.Repeat("b", 1<<16))); n > 0 {
			t.Errorf("a head of %d bytes is like the last one", n)
		}
		raw, err := in.head(len(fmt.Sprintf(head, "1")))
		if i == 3 {
			if !errors.Is(err, ErrHeaderTooLarge) {
				t.Errorf("%q, %v", raw, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.past.head(raw, nil, 0, true); err != nil {
			t.Fatal(err)
		}
		in.r += len(raw)
	}
}

// Whoever changes the headers of a message, even in place, changes no other's.
func TestHeadersAreApart(t *testing.T) {
	raw := func() []byte { return []byte("HTTP/1.1 200 OK\r\nX-A: 1\r\nX-B: 2\r\nX-A: 3\r\n\r\n") }
	reads := newReads()
	in := &reader{reads: &reads}
	var kept []http.Header
	for range 5 {
		in.past.match(raw())
		var resp http.Response
		if err := in.response(raw(), &resp); err != nil {
			t.Fatal(err)
		}
		h := resp.Header
		if fmt.Sprint(h) != "map[X-A:[1 3] X-B:[2]]" {
			t.Fatalf("after another had changed its own: %v", h)
		}
		h["X-B"][0], h["X-A"][1] = "changed", "changed"
		h["X-B"] = append(h["X-B"], "more")
		h["X-A"] = append(h["X-A"], "more")
		h["X-C"] = []string{"new"}
		kept = append(kept, h)
	}
	for _, h := range kept {
		if fmt.Sprint(h) != "map[X-A:[1 changed more] X-B:[changed more] X-C:[new]]" {
			t.Errorf("%v", h)
		}
	}
}

// FuzzHeads reads several heads, cut out of anything, from one connection.
func FuzzHeads(f *testing.F) {
	for _, client := range []bool{true, false} {
		base, all := variants(client)
		for i, v := range all {
			if len(v) < 1<<10 {
				f.Add(base, base, v, []byte{byte(i)}, client)
			}
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c string, sizes []byte, client bool) {
		heads := []string{}
		for _, i := range []int{0, 0, 1, 2, 1, 1, 0} {
			h := []string{a, b, c}[i]
			if !whole(h, client) {
				t.Skip()
			}
			heads = append(heads, h)
		}
		compareHeads(t, client, heads, sizes)
	})
}

// whole reports whether a head is one as a whole, and not more or less.
func whole(h string, client bool) bool {
	reads := newReads()
	in := &reader{src: strings.NewReader(h), reads: &reads, plain: client}
	raw, err := in.head(fuzzLimit)
	return err == nil && len(raw) == len(h) || errors.Is(err, errFolded)
}
