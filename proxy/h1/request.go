package h1

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// writeHead returns the head of a request. It validates everything that it writes, so that no input
// can begin another header or request.
func writeHead(req *http.Request) ([]byte, error) {
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	if !validToken(method) || method == http.MethodConnect {
		return nil, fmt.Errorf("method %.40q", method)
	}
	b := append(make([]byte, 0, 1<<10), method...)
	b = append(b, ' ')
	target := len(b)
	b = append(b, req.URL.RequestURI()...)
	for _, c := range b[target:] {
		if c <= ' ' || c == 0x7f {
			return nil, fmt.Errorf("white space or control byte in URL %.80q", b[target:])
		}
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	if zone := strings.IndexByte(host, '%'); zone >= 0 { // a zone has a meaning only on this machine (RFC 6874, section 4)
		if end := strings.IndexByte(host[zone:], ']'); end >= 0 {
			host = host[:zone] + host[zone+end:]
		}
	}
	if !validHost(host) {
		return nil, fmt.Errorf("host %.80q", host)
	}
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	for name, values := range req.Header {
		if !validToken(name) {
			return nil, fmt.Errorf("header name %.40q", name)
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection": // set here
			continue
		}
		for _, v := range values {
			if !validValue(v) {
				return nil, fmt.Errorf("control byte in the value of header %.40q", name) // without the value, which may be a credential
			}
			b = append(append(b, name...), ": "...)
			b = append(append(b, strings.Trim(v, " \t")...), "\r\n"...)
		}
	}
	if req.Close {
		b = append(b, "Connection: close\r\n"...)
	}
	switch length := bodyLength(req); {
	case length < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case length > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), length, 10), "\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

// bodyLength returns the length of a request's body, or -1 if it is unknown.
func bodyLength(req *http.Request) int64 {
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return 0
	case req.ContentLength == 0: // in net/http this means unknown
		return -1
	}
	return req.ContentLength
}

// inMemory reports whether a request's body can be read again without waiting.
func inMemory(req *http.Request) bool { return req.GetBody != nil || bodyLength(req) == 0 }

// hostOf validates the parts of a request that select the connection.
func hostOf(req *http.Request) (hostKey, error) {
	if req.URL == nil {
		return hostKey{}, errors.New("no URL")
	}
	key := hostKey{tls: req.URL.Scheme == "https", host: req.URL.Host}
	if !key.tls && req.URL.Scheme != "http" {
		return key, fmt.Errorf("scheme %.20q", req.URL.Scheme)
	}
	if !validHost(key.host) || req.URL.Hostname() == "" {
		return key, fmt.Errorf("host %.80q", key.host)
	}
	return key, nil
}

// validToken reports whether s can be a method or a header's name (RFC 9110, section 5.6.2).
func validToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !letter(c) && !digit(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// validValue reports whether a header's value has no control bytes except tabs.
func validValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// validHost accepts names (international ones as punycode), addresses and ports, and no byte that
// could end a line or an authority.
func validHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !letter(c) && !digit(c) && strings.IndexByte(".-_~:[]%", c) < 0 {
			return false
		}
	}
	return s != ""
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
