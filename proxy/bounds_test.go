package proxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
)

// compressed is a text in a content coding.
func compressed(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriterLevel(&b, 5)
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// taken is a request as an upstream saw it.
type taken struct{ coding, body string }

// recorder is an upstream that answers everything, and keeps what came.
func recorder(t *testing.T) (url string, seen func() []taken) {
	var mu sync.Mutex
	var list []taken
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		list = append(list, taken{strings.Join(r.Header["Content-Encoding"], ","), string(body)})
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []taken {
		mu.Lock()
		defer mu.Unlock()
		return append([]taken(nil), list...)
	}
}

// A compressed request that nobody edits goes on as it came; an edited one goes
// uncompressed.
func TestCompressedRequests(t *testing.T) {
	url, seen := recorder(t)
	g := startAt(t, url, "models: {short: {targets: [{upstream: default, model: a-longer-name}]}}\n")
	body := func(model string) string {
		return `{"model":"` + model + `", "messages":[{"role":"user","content":"` + strings.Repeat("Hello there. ", 9000) + `"}]}`
	}
	for _, coding := range []string{"gzip", "zstd", "br"} {
		header := http.Header{"Content-Encoding": {coding}, "Content-Type": {"application/json"}}
		for _, model := range []string{"m", "short"} {
			before, sent := len(seen()), compressed(t, coding, body(model))
			if r := g.post(context.Background(), "/v1/chat/completions", sent, header); r.status != 200 {
				t.Fatalf("%s, %s: %d %s", coding, model, r.status, r.body)
			}
			got := seen()[before:]
			want := taken{coding, sent}
			if model == "short" {
				want = taken{"", body("a-longer-name")}
			}
			if len(got) != 1 || got[0] != want {
				t.Errorf("%s, %s: %d requests, %q, %.80q", coding, model, len(got), got[0].coding, got[0].body)
			}
		}
	}
}

func TestBadCompressedRequests(t *testing.T) {
	url, seen := recorder(t)
	g := startAt(t, url, "limits: {body: 4MiB, memory: 64MiB}\n")
	spaces := `{"model":"m","messages":[]` + strings.Repeat(" ", 3<<20) + `}`
	for _, c := range []struct {
		name, coding, body string
		status             int
		code               string
	}{
		{"bomb of gzip", "gzip", compressed(t, "gzip", spaces), 413, "body_too_dense"},
		{"bomb of zstd", "zstd", compressed(t, "zstd", spaces), 413, "body_too_dense"},
		{"bomb of brotli", "br", compressed(t, "br", spaces), 413, "body_too_dense"},
		{"large", "gzip", compressed(t, "gzip", `{"x":"`+strings.Repeat(random(64<<10), 80)+`"}`), 413, "body_too_large"},
		{"not compressed", "gzip", `{"model":"m","messages":[]}`, 400, "invalid_encoding"},
		{"cut", "gzip", compressed(t, "gzip", spaces[:9000])[:20], 400, "invalid_encoding"},
		{"unknown", "compress", `{}`, 415, "unsupported_encoding"},
		{"twice", "gzip, gzip", `{}`, 415, "unsupported_encoding"},
		{"broken inside", "gzip", compressed(t, "gzip", `{"model":`), 400, "invalid_json"},
	} {
		r := g.post(context.Background(), "/v1/chat/completions", c.body, http.Header{"Content-Encoding": {c.coding}})
		if r.status != c.status || gjson.GetBytes(r.body, "error.code").Str != c.code {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	if n := len(seen()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

// random is n letters that hardly shrink.
func random(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEF"[x>>27]
	}
	return string(b)
}

// Bodies that are being read count as they come. What finds no room is refused at
// once, and what has gone leaves its room to others.
func TestMemoryLimit(t *testing.T) {
	g := start(t, "limits: {body: 1MiB, memory: 1MiB, body_timeout: 5s}\n")
	whole := `{"model":"svc@ok","messages":[{"role":"user","content":"` + strings.Repeat("a", 700<<10) + `"}]}`
	ask := func() reply { return g.post(context.Background(), "/v1/chat/completions", whole, nil) }
	if r := ask(); r.status != 200 {
		t.Fatalf("alone: %d %s", r.status, r.body)
	}

	hold := func() net.Conn {
		c := dial(t, g)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\nContent-Type: application/json\r\n\r\n%s", whole[:260<<10])
		return c
	}
	held := []net.Conn{hold(), hold()}
	refused := func() bool {
		r := ask()
		if r.status == 503 && (gjson.GetBytes(r.body, "error.code").Str != "no_memory" || r.header.Get("Retry-After") == "") {
			t.Errorf("%s %v", r.body, r.header)
		}
		return r.status == 503
	}
	wait(t, "the bodies that are being read to count", func() bool {
		for i, c := range held { // one that grew while a whole one was in work may have been refused itself
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if n, _ := c.Read(make([]byte, 1)); n > 0 {
				held[i] = hold()
			}
		}
		return refused()
	})
	for _, c := range held {
		_ = c.Close()
	}
	wait(t, "room", func() bool { return !refused() })
}

// A client that writes its whole body before it reads learns why it was refused, whoever refused it.
func TestRefusedBodiesAreRead(t *testing.T) {
	g := startBefore(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
		"limits: {body: 16MiB}", "auth: {keys: [{name: one, env: GATEWAY_ONE}]}")
	body := bytes.Repeat([]byte("a"), 24<<20)
	announced, chunked := [2]string{fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), ""},
		[2]string{fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body)), "\r\n0\r\n\r\n"}
	const json, sound = "application/json", "multipart/form-data; boundary=x"
	for _, c := range []struct {
		path, key, kind string
		around          [2]string
		status          int
		slow            bool
	}{
		{"/v1/chat/completions", gatewayKey("ONE"), json, announced, http.StatusRequestEntityTooLarge, false},
		{"/v1/chat/completions", gatewayKey("ONE"), json, chunked, http.StatusRequestEntityTooLarge, false},
		{"/v1/chat/completions", "another", json, announced, http.StatusUnauthorized, false},
		{"/v1/chat/completions", "another", json, announced, http.StatusUnauthorized, true},
		{"/chat", gatewayKey("ONE"), json, announced, http.StatusNotFound, false},
		{"/v1/audio/transcriptions", "another", sound, announced, http.StatusUnauthorized, false},
		{"/v1/audio/transcriptions", gatewayKey("ONE"), sound, announced, http.StatusBadRequest, false}, // by the upstream
		{"/v1/audio/transcriptions", gatewayKey("ONE"), sound, chunked, http.StatusBadRequest, false},
	} {
		conn := dial(t, g)
		head := "POST " + c.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + c.kind + "\r\nAuthorization: Bearer " + c.key + "\r\n" + c.around[0]
		var err error
		for rest := head + string(body) + c.around[1]; rest != "" && err == nil; {
			n := len(rest)
			if c.slow { // as over a slow line
				n = min(n, 1<<20)
				time.Sleep(100 * time.Millisecond)
			}
			_, err = io.WriteString(conn, rest[:n])
			rest = rest[n:]
		}
		if err != nil {
			t.Errorf("%s: %v", head, err)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v %v", head, resp, err)
		}
	}
}

// A Content-Length is a promise, and takes next to nothing.
func TestPromisesTakeNoMemory(t *testing.T) {
	g := start(t, "limits: {body: 1MiB, memory: 2MiB}\n")
	for range 8 { // they leave large buffers behind
		g.post(context.Background(), "/v1/chat/completions", `{"model":"svc@ok","messages":[],"x":"`+strings.Repeat("a", 900<<10)+`"}`, nil)
	}
	for range 8 {
		fmt.Fprintf(dial(t, g), "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
	}
	r := g.post(context.Background(), "/v1/chat/completions", `{"model":"svc@ok","messages":[],"x":"`+strings.Repeat("a", 700<<10)+`"}`, nil)
	if r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// Whatever becomes of a request, its memory is given back.
func TestMemoryComesBack(t *testing.T) {
	g := start(t, "limits: {body: 1MiB, memory: 1MiB}\n")
	large := `"x":"` + strings.Repeat("a", 500<<10) + `"`
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"model":"svc@ok","messages":[],` + large + `}`},
		{"/v1/chat/completions", `{"model":"svc@500","messages":[],` + large + `}`},
		{"/v1/chat/completions", `{"model":1,` + large + `}`},
		{"/v1/chat/completions", `{` + large},
		{"/v1/chat/completions", `{"model":"svc@ok","stream":true,"messages":[],` + large + `}`},
		{"/v1/embeddings", `{"model":"svc@ok","input":"x",` + large + `}`},
	} {
		for range 4 {
			g.post(context.Background(), c.path, c.body, http.Header{"Content-Type": {"application/json"}})
		}
		c := dial(t, g)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n%s", strings.Repeat("a", 300<<10))
		_ = c.Close()
	}
	wait(t, "all room", func() bool {
		return g.post(context.Background(), "/v1/chat/completions", `{"model":"svc@ok","messages":[],"x":"`+strings.Repeat("a", 1000<<10)+`"}`, nil).status == 200
	})
}

// Messages without content take memory, too.
func TestMemoryOfParts(t *testing.T) {
	g := start(t, "limits: {body: 1MiB, memory: 1MiB}\n")
	many := func(n int) int {
		return g.post(context.Background(), "/v1/chat/completions", `{"model":"svc@ok","messages":[{}`+strings.Repeat(",{}", n-1)+`]}`, nil).status
	}
	if got := many(3000); got != 200 {
		t.Errorf("3,000 messages: %d", got)
	}
	if got := many(6000); got != 503 {
		t.Errorf("6,000 messages: %d", got)
	}
}

// wait waits until cond holds.
func wait(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
