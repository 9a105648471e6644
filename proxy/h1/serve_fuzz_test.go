package h1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// FuzzServe sends anything to net/http's server and to ours. What ours
// understands is what net/http understands: the same requests, in the same
// number, with the same bodies. It may refuse more, but nothing may come after
// that. If words is set, data is a choice of words instead of bytes.
func FuzzServe(f *testing.F) {
	for _, s := range smuggling() {
		f.Add([]byte(s), []byte{}, false)
		f.Add([]byte(s), []byte{0, 3, 200, 9}, false)
	}
	for _, tt := range slices.Concat(goodTalks(), badHeads(), badFrames(), badBodies()) {
		if len(tt.say) < 4<<10 {
			f.Add([]byte(tt.say), []byte{}, false)
		}
	}
	for _, line := range spoken() {
		f.Add(line, []byte{}, true)
	}
	std, our := newHearer(f, kinds()[0]), newHearer(f, ours())
	f.Fuzz(func(t *testing.T, data, sizes []byte, words bool) {
		if words {
			data = spell(data)
		}
		if len(data) > 64<<10 {
			t.Skip()
		}
		compareHeard(t, data, std.hear(t, data, sizes), our.hear(t, data, sizes))
	})
}

// seen is a request as the handler was given it.
type seen struct {
	method, text, body string // text is all but the body
	bodyErr            error
}

// heard is what became of some bytes.
type heard struct {
	seen    []seen
	answers []answer
	rest    string // after the last answer
}

// hearer is a server that remembers what its handler has seen.
type hearer struct {
	*site
	mu   sync.Mutex
	seen []seen
}

func newHearer(f *testing.F, k kind) *hearer {
	h := &hearer{}
	h.site = serveWith(f, k, h1.ServerConfig{Handler: h})
	return h
}

// ServeHTTP remembers the request, and answers with its number.
func (h *hearer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{header: http.Header{}}
	delete(r.Header, "Cache-Control") // net/http makes it of a Pragma
	delete(r.Header, "Trailer")       // which it keeps where there can be none
	for _, vv := range r.Header {
		for i := range vv {
			vv[i] = strings.Join(strings.Fields(vv[i]), " ") // what a fold becomes
		}
	}
	body, err := io.ReadAll(r.Body)
	r.Body = http.NoBody
	echo(rec, r)
	h.mu.Lock()
	w.Header().Set("X-Seen", fmt.Sprint(len(h.seen)))
	h.seen = append(h.seen, seen{r.Method, rec.b.String(), string(body), err})
	h.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write(body)
}

// recorder is a ResponseWriter that nobody sees.
type recorder struct {
	header http.Header
	b      bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(p []byte) (int, error) { return r.b.Write(p) }

// hear sends bytes, ends, and returns what was understood and answered.
func (h *hearer) hear(t *testing.T, data, sizes []byte) (o heard) {
	h.mu.Lock()
	h.seen = nil
	h.mu.Unlock()
	h.gate.cut.Store(&sizes)
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	go func() {
		_, _ = c.Write(data)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	all, err := io.ReadAll(c)
	if isTimeout(err) {
		t.Fatalf("does not end: %q", data)
	}
	h.mu.Lock()
	o.seen = slices.Clone(h.seen)
	h.mu.Unlock()
	br := bufio.NewReader(bytes.NewReader(all))
	for {
		method := "GET"
		if n := len(o.answers); n < len(o.seen) {
			method = o.seen[n].method
		}
		a, err := readAnswer(br, method)
		if err != nil {
			break
		}
		o.answers = append(o.answers, a)
	}
	rest, _ := io.ReadAll(br)
	o.rest = string(rest)
	return o
}

// laxer are differences in favour of the client that are meant: white space
// before an extension of a chunk, which RFC 9112 has, and trailers and
// extensions that are bounded in another way.
func laxer(data []byte, err error) bool {
	return regexp.MustCompile(`[0-9a-fA-F][ \t]+;`).Match(data) ||
		strings.Contains(err.Error(), "non-data") || strings.Contains(err.Error(), "MIME") || strings.Contains(err.Error(), "railer")
}

func compareHeard(t *testing.T, data []byte, std, our heard) {
	t.Helper()
	fail := func(i int, why string) {
		t.Helper()
		t.Fatalf("request %d: %s\nsent %q\nnet/http %s\nours %s", i, why, data, std, our)
	}
	for i, o := range our.seen {
		if i >= len(std.seen) {
			fail(i, "net/http does not accept it")
		}
		s := std.seen[i]
		switch {
		case o.text != s.text:
			fail(i, "seen in another way")
		case o.bodyErr == nil && s.bodyErr != nil && laxer(data, s.bodyErr):
			return
		case o.bodyErr == nil && (s.bodyErr != nil || o.body != s.body):
			fail(i, "another body")
		case o.bodyErr != nil && !strings.HasPrefix(o.body, s.body) && !strings.HasPrefix(s.body, o.body):
			fail(i, "the beginning of another body")
		case i >= len(our.answers) || our.answers[i].Header.Get("X-Seen") != fmt.Sprint(i) || our.answers[i].bodyErr != nil:
			fail(i, "not answered")
		case our.answers[i].StatusCode != 200 || o.method != "HEAD" && our.answers[i].body != o.body:
			fail(i, "badly answered")
		case our.answers[i].Close && i < len(our.answers)-1:
			fail(i, "an answer after the last one")
		case our.answers[i].Close && o.bodyErr == nil && !std.answers[i].Close && !bytes.Contains(bytes.ToLower(data), []byte("close")):
			fail(i, "not kept")
		}
	}
	n := len(our.seen)
	if len(our.answers) > n+1 || our.rest != "" {
		fail(n, "too many answers")
	}
	if len(our.answers) == n+1 {
		if a := our.answers[n]; a.StatusCode < 400 || !a.Close || a.bodyErr != nil || a.body == "" {
			fail(n, "a strange refusal")
		}
		return
	}
	if len(std.seen) > n && (n == 0 || our.seen[n-1].bodyErr == nil && !our.answers[n-1].Close) {
		fail(n, "not answered at all")
	}
}

// String is for people.
func (o heard) String() string {
	var b strings.Builder
	for i, s := range o.seen {
		fmt.Fprintf(&b, "\n  %d: %s  body %q %v", i, s.text, s.body, s.bodyErr)
	}
	for i, a := range o.answers {
		fmt.Fprintf(&b, "\n  answer %d: %s %q %.300q %v", i, a.Status, a.Header, a.body, a.bodyErr)
	}
	if o.rest != "" {
		fmt.Fprintf(&b, "\n  and %q", o.rest)
	}
	return b.String()
}
