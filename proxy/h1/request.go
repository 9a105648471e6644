package h1

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rebound-llm/rebound/recovery/ending"
)

// turn is one request and its answer.
type turn struct {
	req   http.Request
	url   url.URL
	body  requestBody
	reply reply
	ctx   ending.Context
	slab  [20]string // of the headers' values: the usual client sends 17
}

// refusal answers a request that never reaches the handler.
type refusal struct {
	status int
	reason string
}

func (r refusal) Error() string { return r.reason }

func malformed(format string, args ...any) error {
	return refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// parse makes a request of its head, whose names it spells canonically in place.
func (k *link) parse(raw []byte) (*turn, error) {
	t := &turn{}
	f, err := k.in.past.head(raw, t.slab[:], 0, true)
	if err != nil {
		return nil, malformed("%v", err)
	}
	method, rest, ok := strings.Cut(f.first, " ")
	target, proto, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || !validToken(method) {
		return nil, malformed("malformed request line %.80q", f.first)
	}
	minor, err := version(proto)
	if err != nil {
		return nil, err
	}
	r := &t.req
	r.Method = knownMethod(method)
	r.RequestURI = target
	r.Proto, r.ProtoMajor, r.ProtoMinor = protos[minor], 1, minor
	r.RemoteAddr = k.remote
	r.Header = f.header
	if err := t.aim(f.hosts); err != nil {
		return nil, err
	}
	if err := t.frame(k); err != nil {
		return nil, err
	}
	t.reply = reply{link: k, turn: t}
	return t, nil
}

// protos are the versions that are served.
var protos = [2]string{"HTTP/1.0", "HTTP/1.1"}

// version returns the minor version of HTTP/1.
func version(proto string) (int, error) {
	for minor, known := range protos {
		if proto == known {
			return minor, nil
		}
	}
	if len(proto) == len("HTTP/2.0") && proto[:5] == "HTTP/" && digit(proto[5]) && proto[6] == '.' && digit(proto[7]) {
		return 0, refusal{http.StatusHTTPVersionNotSupported, "only HTTP/1.0 and HTTP/1.1 are spoken here"}
	}
	return 0, malformed("malformed HTTP version %.20q", proto)
}

// knownMethod lets the usual methods go without the head they came with.
func knownMethod(m string) string {
	switch m {
	case http.MethodPost:
		return http.MethodPost
	case http.MethodGet:
		return http.MethodGet
	}
	return m
}

// aim reads the request's target, and its host of the headers of that name.
func (t *turn) aim(hosts []string) error {
	r := &t.req
	if r.Method == http.MethodConnect {
		return refusal{http.StatusNotImplemented, "CONNECT is not served"}
	}
	switch {
	case len(hosts) == 1:
		r.Host = hosts[0]
		if r.Host != "" && !validHost(r.Host) {
			return malformed("malformed Host header")
		}
	case len(hosts) > 1:
		return malformed("several Host headers")
	case r.ProtoMinor > 0:
		return malformed("missing Host header")
	}
	if path, query, ok := plainTarget(r.RequestURI); ok {
		t.url = url.URL{Path: path, RawQuery: query}
		r.URL = &t.url
		return nil
	}
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return malformed("malformed request target %.80q", r.RequestURI)
	}
	if r.URL = u; u.Host != "" { // it overrules the header (RFC 9112, section 3.2.2)
		r.Host = u.Host
	}
	return nil
}

// plainTarget splits a target in which nothing has to be decoded.
func plainTarget(s string) (path, query string, ok bool) {
	if s == "" || s[0] != '/' || strings.HasPrefix(s, "//") {
		return "", "", false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '-' <= c && c <= '9', c == '_', c == '~': // - . / and digits
		case c == '?' && i+1 < len(s):
			for _, q := range []byte(s[i+1:]) {
				if q <= ' ' || q >= 0x7f {
					return "", "", false
				}
			}
			return s[:i], s[i+1:], true
		default:
			return "", "", false
		}
	}
	return s, "", true
}

// frame says where the request's body ends and whether another one may follow
// (RFC 9112, section 6). What two readers could understand differently is refused.
func (t *turn) frame(k *link) error {
	r := &t.req
	connection := r.Header["Connection"]
	r.Close = hasToken(connection, "close") || r.ProtoMinor == 0 && !hasToken(connection, "keep-alive")
	length, err := contentLength(r.Header)
	if err != nil {
		return malformed("%v", err)
	}
	b := &t.body
	b.link = k
	b.payload = payload{in: &k.in, trailer: k.srv.cfg.MaxHeaderBytes}
	te, chunked := r.Header["Transfer-Encoding"]
	switch {
	case chunked && (r.ProtoMinor == 0 || length >= 0):
		return malformed("Transfer-Encoding must not be used in HTTP/1.0 or together with Content-Length")
	case chunked && (len(te) != 1 || !sameWord(te[0], "chunked")):
		return refusal{http.StatusNotImplemented, fmt.Sprintf("unsupported transfer encoding %.80q", te)}
	case chunked:
		delete(r.Header, "Transfer-Encoding")
		r.TransferEncoding = []string{"chunked"}
		r.ContentLength = -1
		b.payload.kind = chunkedPayload
	case length > 0:
		r.ContentLength = length
		b.payload.kind, b.payload.left = sizedPayload, length
	}
	delete(r.Header, "Trailer")
	r.Body = b
	if expect := r.Header["Expect"]; len(expect) > 0 {
		if len(expect) > 1 || !sameWord(expect[0], "100-continue") {
			return refusal{http.StatusExpectationFailed, "the only expectation that is met is 100-continue"}
		}
		b.asked.Store(r.ProtoMinor > 0 && b.payload.kind != noPayload)
	}
	if b.payload.kind == noPayload {
		r.Body = http.NoBody
	}
	return nil
}

// requestBody is the body of a request. The handler, or whoever it lends the
// body to, reads it, one goroutine at a time.
type requestBody struct {
	link    *link
	asked   atomic.Bool // the client waits for a word before it sends
	closed  atomic.Bool
	mu      sync.Mutex
	begun   bool // somebody has read of it, and may go on
	payload payload
	err     error // what Read returns from now on
}

// Read implements io.Reader. The last bytes come together with io.EOF if it is
// known that they are the last.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
		return 0, b.err
	case b.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	case len(p) == 0:
		return 0, nil
	}
	if b.asked.Swap(false) {
		if err := b.link.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
			return 0, err
		}
	}
	b.begun = true
	n, err := b.payload.Read(p)
	if err != nil {
		b.err = err
		if b.done() {
			b.link.arm()
		}
	}
	return n, err
}

// Close implements io.Closer: the rest of the body is of no interest.
func (b *requestBody) Close() error {
	b.closed.Store(true)
	return nil
}

// done reports whether all of the body was read.
func (b *requestBody) done() bool {
	p := &b.payload
	switch p.kind {
	case noPayload:
		return true
	case sizedPayload:
		return p.left == 0
	default:
		return p.phase == chunkDone
	}
}

// arrived reports, before an answer, whether the whole body is here: another
// request may follow. What nobody reads any more, because nobody began to or the
// handler has returned, is dropped. It is false for a client that waits to be
// asked for its body: now it is too late.
func (b *requestBody) arrived(returned bool) bool {
	if b.asked.Swap(false) || !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	if b.done() {
		return true
	}
	if b.begun && !returned && !b.closed.Load() {
		return false
	}
	b.closed.Store(true)
	if !b.drained() {
		return false
	}
	b.link.arm()
	return true
}

// drained drops what has arrived of the body, and reports whether that was all
// of it. After an error nobody knows where it ends. b.mu is held.
func (b *requestBody) drained() bool { return b.done() || b.err == nil && b.payload.drain() }

// abandon ends the reading of the body after its handler, and reports whether
// the client may still be sending.
func (b *requestBody) abandon() bool {
	b.closed.Store(true)
	if !b.mu.TryLock() {
		b.link.until(longAgo()) // a read that nobody waits for
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	return !b.drained()
}
