package h1

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// replyFraming is how the client learns where an answer's body ends.
type replyFraming uint8

const (
	unframed     replyFraming = iota // not decided: the head is not written
	bodyless                         // the status or the method allows none
	sizedReply                       // by Content-Length
	chunkedReply                     // by an empty chunk
	closedReply                      // with the connection: HTTP/1.0
)

// reply is the ResponseWriter of one request.
type reply struct {
	link *link
	turn *turn
	over atomic.Bool // the handler has returned

	header   http.Header
	lent     bool // header is not ours
	status   int  // 0 before WriteHeader
	framing  replyFraming
	left     int64  // of a sized body
	length   int64  // what the handler announced, -1 if nothing
	close    bool   // the connection ends with this answer
	out      memory // to be written; while unframed, the head without its end
	gathered memory // of the body while unframed
	err      error  // of a write
}

// memory is a buffer that is there only while it is needed.
type memory struct {
	b    []byte
	kept *[]byte // b's, to give back
}

// attach gets the buffer.
func (m *memory) attach(s *Server) {
	if m.kept == nil {
		m.kept = s.outs.Get().(*[]byte)
		m.b = (*m.kept)[:0]
	}
}

// detach gives the buffer back, with what is in it.
func (m *memory) detach(s *Server) {
	if m.kept == nil {
		return
	}
	if cap(m.b) <= keepOut {
		*m.kept = m.b[:0]
	}
	s.outs.Put(m.kept)
	m.kept, m.b = nil, nil
}

var errReplyOver = errors.New("h1: the handler of this answer has returned")

// Header implements [http.ResponseWriter].
func (r *reply) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header, 8)
	}
	return r.header
}

// LendHeader sets headers of the answer. The map may become that of Header, and
// is not used any more once WriteHeader has returned.
func (r *reply) LendHeader(h http.Header) {
	if len(r.header) > 0 {
		maps.Copy(r.header, h)
		return
	}
	r.header, r.lent = h, true
}

// WriteHeader implements [http.ResponseWriter]. Informational statuses go out at once.
func (r *reply) WriteHeader(status int) {
	switch {
	case r.status != 0 || r.over.Load():
	case status < 100 || status > 999:
		panic("h1: invalid status " + strconv.Itoa(status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		if r.turn.req.ProtoMinor > 0 {
			r.inform(status)
		}
	default:
		r.status = status
		r.headers()
	}
}

// headers puts status line and headers, as they are now, before the answer, and
// notes what they say of the body and the connection.
func (r *reply) headers() {
	r.length = -1
	r.out.attach(r.link.srv)
	b := appendStatus(r.out.b, r.turn.req.ProtoMinor, r.status)
	dated := false
	for name, values := range r.header {
		switch {
		case framing(name):
			if len(values) > 0 && name == "Content-Length" {
				if n, err := strconv.ParseUint(values[0], 10, 63); err == nil {
					r.length = int64(n)
				}
			}
		case sameWord(name, "Connection"):
			r.close = r.close || hasToken(values, "close")
		default:
			dated = dated || sameWord(name, "Date")
			b = appendHeader(b, name, values)
		}
	}
	if !dated {
		b = append(b, "Date: "...)
		b = r.link.srv.date.append(b, time.Now())
		b = append(b, '\r', '\n')
	}
	r.out.b = b
	if r.lent {
		r.header, r.lent = nil, false
	}
}

// Write implements [http.ResponseWriter].
func (r *reply) Write(p []byte) (int, error) {
	if r.over.Load() {
		return 0, errReplyOver
	}
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if len(p) == 0 || r.turn.req.Method == http.MethodHead {
		return len(p), nil
	}
	if r.framing == unframed {
		if r.length < 0 && len(r.gathered.b)+len(p) <= gatherBytes {
			r.gathered.attach(r.link.srv)
			r.gathered.b = append(r.gathered.b, p...)
			return len(p), nil // perhaps all of it: its length would be known
		}
		r.begin(r.length, false)
	}
	if r.framing == sizedReply && int64(len(p)) > r.left {
		return 0, http.ErrContentLength
	}
	return r.body(p)
}

// body adds a part of the body to what is to be written, and writes that if it
// has become much.
func (r *reply) body(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.left -= int64(len(p))
	chunked := r.framing == chunkedReply && len(p) > 0
	r.out.attach(r.link.srv)
	b := r.out.b
	if chunked {
		b = strconv.AppendUint(b, uint64(len(p)), 16)
		b = append(b, '\r', '\n')
	}
	if len(b)+len(p) > keepOut {
		pieces := net.Buffers{b, p, nil}
		if chunked {
			pieces[2] = []byte("\r\n")
		}
		r.failed(r.link.writeAll(pieces))
		r.out.b = b[:0]
	} else {
		b = append(b, p...)
		if chunked {
			b = append(b, '\r', '\n')
		}
		if r.out.b = b; len(b) >= keepOut/2 {
			r.send()
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Flush implements [http.Flusher].
func (r *reply) Flush() { _ = r.FlushError() }

// FlushError sends what was written so far, and says whether that could be done.
// [http.ResponseController] uses it.
func (r *reply) FlushError() error {
	if r.over.Load() {
		return errReplyOver
	}
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.framing == unframed {
		r.begin(r.length, false)
	}
	r.send()
	r.out.detach(r.link.srv)
	return r.err
}

// SetReadDeadline is for [http.ResponseController]. It ends with the request.
func (r *reply) SetReadDeadline(t time.Time) error {
	if r.over.Load() {
		return errReplyOver
	}
	r.link.until(t)
	return nil
}

// SetWriteDeadline is for [http.ResponseController]. Until the handler has
// returned, or sets the zero time, it replaces the server's own time-out.
func (r *reply) SetWriteDeadline(t time.Time) error {
	if r.over.Load() {
		return errReplyOver
	}
	return r.link.limitWrite(t)
}

// finish completes the answer of a handler that has returned, and reports
// whether the connection may be used again.
func (r *reply) finish() bool {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.framing == unframed {
		length := r.length
		if length < 0 {
			length = int64(len(r.gathered.b))
		}
		r.begin(length, true)
	}
	if r.framing == chunkedReply {
		r.out.attach(r.link.srv)
		r.out.b = append(r.out.b, "0\r\n\r\n"...)
	}
	r.over.Store(true)
	r.send()
	r.out.detach(r.link.srv)
	short := r.framing == sizedReply && r.left > 0
	return r.err == nil && !r.close && !short
}

// begin decides how the body is framed, ends the head with that and puts what
// was gathered of the body behind it. length is that of the body, -1 if unknown.
func (r *reply) begin(length int64, returned bool) {
	req := &r.turn.req
	switch {
	case req.Method == http.MethodHead:
		r.framing, length = bodyless, r.length
	case !bodyAllowed(r.status):
		r.framing, length = bodyless, -1
	case length >= 0:
		r.framing, r.left = sizedReply, length
	case req.ProtoMinor > 0:
		r.framing = chunkedReply
	default:
		r.framing = closedReply
	}
	r.close = r.close || req.Close || r.framing == closedReply || r.link.srv.ending.Load() || !r.turn.body.arrived(returned)
	b := r.out.b
	switch {
	case r.framing == chunkedReply:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case length >= 0:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, '\r', '\n')
	}
	switch {
	case r.close:
		b = append(b, "Connection: close\r\n"...)
	case req.ProtoMinor == 0:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	r.out.b = append(b, '\r', '\n')
	if len(r.gathered.b) > 0 {
		_, _ = r.body(r.gathered.b)
	}
	r.gathered.detach(r.link.srv)
}

// bodyAllowed reports whether a status may come with a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// inform sends an informational response.
func (r *reply) inform(status int) {
	var m memory
	m.attach(r.link.srv)
	defer m.detach(r.link.srv)
	m.b = appendStatus(m.b, 1, status)
	for name, values := range r.header {
		if !framing(name) && !sameWord(name, "Connection") {
			m.b = appendHeader(m.b, name, values)
		}
	}
	m.b = append(m.b, '\r', '\n')
	r.failed(r.link.write(m.b))
}

func appendStatus(b []byte, minor, status int) []byte {
	if minor > 0 && status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = append(b, protos[minor]...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	return append(b, '\r', '\n')
}

// appendHeader appends a header unless its name is none. A value cannot end its line.
func appendHeader(b []byte, name string, values []string) []byte {
	if !validToken(name) {
		return b
	}
	for _, v := range values {
		b = append(b, name...)
		b = append(b, ':', ' ')
		value := len(b)
		if b = append(b, trimmed(v)...); !validValue(b[value:]) {
			for i, c := range b[value:] {
				if c < ' ' && c != '\t' || c == 0x7f {
					b[value+i] = ' '
				}
			}
		}
		b = append(b, '\r', '\n')
	}
	return b
}

// send writes what is gathered.
func (r *reply) send() {
	if r.err != nil || len(r.out.b) == 0 {
		return
	}
	r.failed(r.link.write(r.out.b))
	r.out.b = r.out.b[:0]
}

// failed notes the failure of a write: the client is gone, or as good as gone.
func (r *reply) failed(err error) {
	if err != nil && r.err == nil {
		r.err, r.close = err, true
		r.link.gone()
	}
}

// clock is the date of answers, made once a second.
type clock struct{ now atomic.Pointer[tick] }

type tick struct {
	second int64
	text   string
}

func (c *clock) append(b []byte, now time.Time) []byte {
	t := c.now.Load()
	if s := now.Unix(); t == nil || t.second != s {
		t = &tick{s, now.UTC().Format(http.TimeFormat)}
		c.now.Store(t)
	}
	return append(b, t.text...)
}
