package h1

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// outgoing is a request on its way: bytes to be written and, unless they are
// everything, a body that follows.
type outgoing struct {
	buf    []byte
	body   io.ReadCloser // nil if buf is the whole request
	first  []byte        // of the body, read too early
	length int64         // of body with first, -1 to send it chunked
	memory bool          // body never waits
	close  bool          // the connection is not to be used again
}

// seekable is what bodies that embed a bytes.Reader or strings.Reader have.
type seekable interface {
	io.Seeker
	Len() int
}

// inMemory reports whether reading the body cannot wait for anything, and
// whether rewind will work.
func inMemory(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return true
	}
	_, ok := req.Body.(seekable)
	return ok
}

// unread is how much of a seekable body there is.
func unread(req *http.Request) int64 {
	if s, ok := req.Body.(seekable); ok {
		return int64(s.Len())
	}
	return 0
}

// rewind returns the body of a request that is inMemory once more from where it
// began; size is what it had unread then.
func rewind(req *http.Request, size int64) (io.ReadCloser, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	if req.GetBody != nil {
		return req.GetBody()
	}
	_, err := req.Body.(seekable).Seek(-size, io.SeekEnd)
	return req.Body, err
}

// encode appends the request's head, of which begin is the beginning, to o.buf,
// and its body if that is small and in memory, which it then closes. It validates
// everything it writes: no byte of the caller's can begin another header or request.
func (o *outgoing) encode(req *http.Request, begin string, body io.ReadCloser, omit func(string) bool) error {
	o.memory = inMemory(req)
	o.length = req.ContentLength
	switch {
	case body == nil || body == http.NoBody:
		body, o.length = nil, 0
		if req.ContentLength > 0 {
			return &RequestError{fmt.Errorf("%d bytes announced without a body", req.ContentLength)}
		}
	case o.length == 0 && unread(req) > 0: // zero is net/http's way to say that it is unknown
		o.length = unread(req)
	case o.length == 0 && o.memory:
		o.first = make([]byte, 1)
		if _, err := io.ReadFull(body, o.first); err == io.EOF {
			o.first = nil
		} else if err != nil {
			return &RequestBodyError{err}
		} else {
			o.length = -1
		}
	case o.length == 0:
		o.length = -1
	}
	if err := o.head(req, begin, body != nil, omit); err != nil {
		return err
	}
	if body == nil || !o.memory || o.length < 0 || o.length > inlineBody {
		o.body = body
		return nil
	}
	n := len(o.buf)
	o.buf = append(o.buf, make([]byte, o.length+1)...) // one more shows a body that is longer
	m, err := io.ReadFull(body, o.buf[n:])
	if err == nil {
		err = errBodyTooLong
	} else if int64(m) == o.length && (err == io.EOF || err == io.ErrUnexpectedEOF) {
		err = nil
	} else {
		err = unexpected(err)
	}
	o.buf = o.buf[:n+m]
	if cerr := body.Close(); err == nil && cerr != nil {
		err = cerr
	}
	if err != nil {
		return &RequestBodyError{err}
	}
	return nil
}

var errBodyTooLong = errors.New("body is longer than its announced length")

// opening is how requests to one place begin, and where that is.
type opening struct {
	method, host string
	url          url.URL
	key          hostKey
	head         string // request line and Host
}

// maxOpening bounds what of a URL is remembered.
const maxOpening = 2 << 10

// of reports whether a request begins like that.
func (o *opening) of(req *http.Request) bool {
	return o != nil && req.URL != nil && req.Method == o.method && req.Host == o.host && *req.URL == o.url
}

// opening returns how a request begins. Most begin like the one before.
func (t *Transport) opening(req *http.Request) (*opening, error) {
	if o := t.last.Load(); o.of(req) {
		return o, nil
	}
	key, err := hostOf(req)
	if err != nil {
		return nil, err
	}
	head, err := appendOpening(nil, req)
	if err != nil {
		return nil, err
	}
	o := &opening{method: req.Method, host: req.Host, url: *req.URL, key: key, head: string(head)}
	if len(head) <= maxOpening {
		t.last.Store(o)
	}
	return o, nil
}

// appendOpening appends the request line and the Host header.
func appendOpening(b []byte, req *http.Request) ([]byte, error) {
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	if !validToken(method) || method == http.MethodConnect {
		return nil, &RequestError{fmt.Errorf("method %.40q", method)}
	}
	b = append(b, method...)
	b = append(b, ' ')
	target := len(b)
	if u := req.URL; u.Opaque != "" {
		b = append(b, u.RequestURI()...)
	} else {
		path := u.EscapedPath()
		if !strings.HasPrefix(path, "/") {
			b = append(b, '/')
		}
		b = append(b, path...)
		if u.ForceQuery || u.RawQuery != "" {
			b = append(b, '?')
			b = append(b, u.RawQuery...)
		}
	}
	for _, c := range b[target:] {
		if c <= ' ' || c == 0x7f {
			return nil, &RequestError{fmt.Errorf("white space or control byte in URL %.80q", b[target:])}
		}
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	if zone := strings.IndexByte(host, '%'); zone >= 0 { // nobody's business but ours (RFC 6874, section 4)
		if end := strings.IndexByte(host[zone:], ']'); end >= 0 {
			host = host[:zone] + host[zone+end:]
		}
	}
	if !validHost(host) {
		return nil, &RequestError{fmt.Errorf("host %.80q", host)}
	}
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	return append(b, '\r', '\n'), nil
}

// head appends what begins the request, as opening has it, and the headers.
func (o *outgoing) head(req *http.Request, begin string, body bool, omit func(string) bool) error {
	b := append(o.buf, begin...)
	for name, values := range req.Header {
		if omit != nil && omit(name) {
			continue
		}
		if !validToken(name) {
			return &RequestError{fmt.Errorf("header name %.40q", name)}
		}
		if framing(name) || sameWord(name, "Host") { // ours to say
			continue
		}
		if sameWord(name, "Connection") {
			if hasToken(values, "close") {
				o.close = true
			}
			if req.Close {
				continue
			}
		}
		for _, v := range values {
			b = append(b, name...)
			b = append(b, ':', ' ')
			value := len(b)
			b = append(b, trimmed(v)...)
			if !validValue(b[value:]) {
				return &RequestError{fmt.Errorf("control byte in the value of header %.40q", name)} // the value may be a credential
			}
			b = append(b, '\r', '\n')
		}
	}
	if req.Close {
		o.close = true
		b = append(b, "Connection: close\r\n"...)
	}
	switch {
	case o.length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case body || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, o.length, 10)
		b = append(b, '\r', '\n')
	}
	o.buf = append(b, '\r', '\n')
	return nil
}

// validToken reports whether s can be a method or a header's name.
func validToken(s string) bool {
	for i := lettered(s); i < len(s); i++ {
		if c := s[i] | 0x20; ('a' > c || c > 'z') && !token(s[i]) { // nearly all are letters
			return false
		}
	}
	return s != ""
}

// trimmed is a header's value without white space around it: mostly there is none.
func trimmed(s string) string {
	if s == "" || s[0] > ' ' && s[len(s)-1] > ' ' {
		return s
	}
	return strings.Trim(s, " \t")
}

// validHost accepts names (international ones as punycode), addresses and
// ports, and nothing that could end a line or an authority.
func validHost(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', digit(c):
		case c == '.', c == '-', c == '_', c == '~', c == ':', c == '[', c == ']', c == '%':
		default:
			return false
		}
	}
	return s != ""
}
