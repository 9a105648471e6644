package h1

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
)

// response reads a response's head, complete with its empty line, into resp:
// protocol, status and headers. It changes raw and keeps nothing of it.
func (b *reader) response(raw []byte, resp *http.Response) error {
	f, err := b.past.head(raw, nil, slack, false)
	if err != nil {
		return err
	}
	status := f.first
	if !validStatusLine(status) {
		return fmt.Errorf("%w: status line %.80q", ErrMalformed, status)
	}
	resp.Proto, resp.ProtoMajor, resp.ProtoMinor = status[:8], 1, int(status[7]-'0')
	resp.Status = status[9:]
	resp.StatusCode = int(status[9]-'0')*100 + int(status[10]-'0')*10 + int(status[11]-'0')
	resp.Header = f.header
	return nil
}

// checkHead checks the header lines of a head, gives their names the canonical
// spelling in place, and returns their number.
func checkHead(raw []byte) (n int, err error) {
	i := bytes.IndexByte(raw, '\n')
	for rest := raw[i+1:]; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		l := bytes.TrimSuffix(rest[:i], []byte{'\r'})
		rest = rest[i+1:]
		if len(l) == 0 {
			break
		}
		if !canonicalLine(l) {
			return 0, fmt.Errorf("%w: header line %.80q", ErrMalformed, l)
		}
		n++
	}
	return n, nil
}

// slack is room in a map of headers for those that are added on their way.
const slack = 4

// validStatusLine accepts HTTP/1.x, three digits from 100 and a reason that cannot hide anything.
func validStatusLine(l string) bool {
	if len(l) < len("HTTP/1.1 200") || l[:7] != "HTTP/1." || !digit(l[7]) || l[8] != ' ' ||
		l[9] < '1' || !digit(l[9]) || !digit(l[10]) || !digit(l[11]) {
		return false
	}
	return len(l) == 12 || l[12] == ' ' && validValue([]byte(l[12:]))
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// canonicalLine checks a header line and gives its name the spelling of
// [http.CanonicalHeaderKey], in place.
func canonicalLine(l []byte) bool {
	upper := true
	for i, c := range l {
		switch {
		case 'a' <= c && c <= 'z':
			if upper {
				l[i] = c ^ 0x20
			}
		case 'A' <= c && c <= 'Z':
			if !upper {
				l[i] = c ^ 0x20
			}
		case c == ':':
			return i > 0 && validValue(l[i+1:])
		case !token(c):
			return false
		}
		upper = c == '-'
	}
	return false
}

// token reports whether a byte may be in a header's name (RFC 9110, section 5.6.2).
func token(c byte) bool {
	const lo = 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.' | (1<<10-1)<<'0'
	const hi = (1<<26-1)<<('A'-64) | 1<<('^'-64) | 1<<('_'-64) | 1<<('`'-64) | (1<<26-1)<<('a'-64) | 1<<('|'-64) | 1<<('~'-64)
	set := uint64(lo)
	if c >= 64 {
		set = hi
	}
	return c < 128 && set>>(c&63)&1 != 0
}

// lettered is a number of bytes at the beginning of a name that are letters and
// hyphens: of nearly all names the whole, unless they are short. The bytes after
// that have to be looked at one by one.
func lettered(s string) int {
	n := 0
	for ; n+8 <= len(s); n += 8 {
		if !letters(word(s[n:])) {
			return n
		}
	}
	if n > 0 && n < len(s) && letters(word(s[len(s)-8:])) {
		return len(s)
	}
	return n
}

// word is the first eight bytes of s.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// letters reports whether eight bytes are letters or hyphens: it adds to each,
// if none is above 0x7f, what takes those from a bound on to the top bit.
func letters(word uint64) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	small := word | 0x20*each
	letter := (small + (0x80-'a')*each) &^ (small + (0x7f-'z')*each)
	other := word ^ '-'*each + 0x7f*each
	return (word|^(letter|^other))&top == 0
}

// validValue reports whether a header's value is free of control bytes but tabs.
func validValue(v []byte) bool {
	for len(v) >= 8 && plain(binary.LittleEndian.Uint64(v)) {
		v = v[8:]
	}
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// plain reports whether eight bytes are surely no control bytes: none is below
// a space, and none is DEL. It is the usual test of a word for a byte below n
// (Anderson, Bit Twiddling Hacks), which may err only to be asked again.
func plain(word uint64) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	del := word ^ 0x7f*each
	return ((word-' '*each)&^word|(del-each)&^del)&top == 0
}

// frame says how the body of a response ends and whether its connection may
// be used again, from its head and the request's method (RFC 9112, section
// 6.3). It removes the headers that described the framing.
func frame(method string, resp *http.Response) (p payload, keep bool, err error) {
	h := resp.Header
	if resp.ProtoMinor == 0 {
		keep = hasToken(h["Connection"], "keep-alive") && !hasToken(h["Connection"], "close")
	} else {
		keep = !hasToken(h["Connection"], "close")
	}
	length, err := contentLength(h)
	if err != nil {
		return p, false, err
	}
	chunked := false
	if te, ok := h["Transfer-Encoding"]; ok {
		delete(h, "Transfer-Encoding")
		switch {
		case resp.ProtoMinor == 0: // it does not exist there: not trusted any further
			keep = false
		case len(te) != 1 || !sameWord(te[0], "chunked"):
			return p, false, fmt.Errorf("%w: transfer encoding %.80q", ErrMalformed, te)
		default:
			chunked = true
			delete(h, "Trailer")
		}
	}
	resp.ContentLength = length
	switch {
	case method == http.MethodHead || resp.StatusCode < 200 || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		p.kind = noPayload
		if method != http.MethodHead {
			resp.ContentLength = 0
		}
		if chunked {
			resp.TransferEncoding = []string{"chunked"}
		}
	case chunked:
		if length >= 0 { // somebody on the way may have believed the other one
			delete(h, "Content-Length")
			keep = false
		}
		p.kind = chunkedPayload
		resp.ContentLength = -1
		resp.TransferEncoding = []string{"chunked"}
	case length == 0:
		p.kind = noPayload
	case length > 0:
		p.kind, p.left = sizedPayload, length
	default:
		p.kind = closedPayload
		keep = false
	}
	resp.Close = !keep
	return p, keep, nil
}

// contentLength is -1 where there is none. Repetitions must agree.
func contentLength(h http.Header) (int64, error) {
	vv := h["Content-Length"]
	if len(vv) == 0 {
		return -1, nil
	}
	v := vv[0]
	for _, other := range vv[1:] {
		if other != v {
			return 0, fmt.Errorf("%w: several content lengths", ErrMalformed)
		}
	}
	if len(vv) > 1 {
		h["Content-Length"] = vv[:1]
	}
	if v == "" || len(v) > 18 { // an exabyte is enough
		return 0, fmt.Errorf("%w: content length %.40q", ErrMalformed, v)
	}
	var n int64
	for i := range len(v) {
		if !digit(v[i]) {
			return 0, fmt.Errorf("%w: content length %.40q", ErrMalformed, v)
		}
		n = n*10 + int64(v[i]-'0')
	}
	return n, nil
}

// hasToken reports whether a comma-separated header contains a word.
func hasToken(values []string, word string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if sameWord(strings.Trim(t, " \t"), word) {
				return true
			}
		}
	}
	return false
}

// sameWord compares words of the protocol, of which the second has small
// letters or capitals that begin its parts. Unlike strings.EqualFold it knows no
// letters beyond ASCII: whoever else reads the message does not either.
func sameWord(s, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		a, b := s[i], word[i]
		if a != b && (a^b != 0x20 || a|0x20 < 'a' || a|0x20 > 'z') {
			return false
		}
	}
	return true
}

// framing reports whether a header, in any spelling, says how a message is
// framed: that is not its writer's to say.
func framing(name string) bool {
	switch len(name) {
	case len("Trailer"):
		return sameWord(name, "Trailer")
	case len("Content-Length"):
		return sameWord(name, "Content-Length")
	case len("Transfer-Encoding"):
		return sameWord(name, "Transfer-Encoding")
	}
	return false
}
