package h1

import (
	"errors"
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

	header  http.Header
	status  int // 0 before WriteHeader
	framing replyFraming
	left    int64   // of a sized body
	length  int64   // what the handler announced, -1 if nothing
	close   bool    // the connection ends with this answer
	kept    *[]byte // memory of out, to give back
	out     []byte  // gathered: the body while unframed, else what is to be written
	err     error   // of a write
}

var errReplyOver = errors.New("h1: the handler of this answer has returned")

// Header implements [http.ResponseWriter].
func (r *reply) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header, 8)
	}
	return r.header
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
		r.length = announced(r.header)
	}
}

// announced is the handler's Content-Length, -1 if there is none that can be used.
func announced(h http.Header) int64 {
	v := h["Content-Length"]
	if len(v) == 0 {
		return -1
	}
	n, err := strconv.ParseUint(v[0], 10, 63)
	if err != nil {
		return -1
	}
	return int64(n)
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
		if r.length < 0 && len(r.out)+len(p) <= gatherBytes {
			r.attach()
			r.out = append(r.out, p...)
			return len(p), nil // perhaps all of it: its length would be known
		}
		r.begin(r.length)
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
	r.attach()
	if r.framing == chunkedReply && len(p) > 0 {
		r.out = strconv.AppendUint(r.out, uint64(len(p)), 16)
		r.out = append(r.out, '\r', '\n')
	}
	if len(r.out)+len(p) <= keepOut {
		r.out = append(r.out, p...)
		if r.framing == chunkedReply && len(p) > 0 {
			r.out = append(r.out, '\r', '\n')
		}
		if len(r.out) >= keepOut/2 {
			r.send()
		}
	} else {
		pieces := net.Buffers{r.out, p, nil}
		if r.framing == chunkedReply {
			pieces[2] = []byte("\r\n")
		}
		r.failed(r.link.writeAll(pieces))
		r.out = r.out[:0]
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
		r.begin(r.length)
	}
	r.send()
	r.detach()
	return r.err
}

// SetReadDeadline is for [http.ResponseController]. It ends with the request.
func (r *reply) SetReadDeadline(t time.Time) error {
	r.link.until(t)
	return nil
}

// SetWriteDeadline is for [http.ResponseController]. Until the handler has
// returned, or sets the zero time, it replaces the server's own time-out.
func (r *reply) SetWriteDeadline(t time.Time) error { return r.link.limitWrite(t) }

// finish completes the answer and reports whether the connection may be used again.
func (r *reply) finish() bool {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.framing == unframed {
		length := r.length
		if length < 0 {
			length = int64(len(r.out))
		}
		r.begin(length)
	}
	if r.framing == chunkedReply {
		r.attach()
		r.out = append(r.out, "0\r\n\r\n"...)
	}
	r.over.Store(true)
	r.send()
	r.detach()
	short := r.framing == sizedReply && r.left > 0
	return r.err == nil && !r.close && !short && r.framing != closedReply
}

// begin decides how the body is framed and puts the head, with what was
// gathered of the body behind it, on its way. length is that of the body, -1 if unknown.
func (r *reply) begin(length int64) {
	gathered, memory := r.out, r.kept
	r.out, r.kept = nil, nil
	head := r.turn.req.Method == http.MethodHead
	minor := r.turn.req.ProtoMinor
	switch {
	case head || !bodyAllowed(r.status):
		r.framing = bodyless
		if !head || r.length < 0 {
			length = -1
		}
	case length >= 0:
		r.framing, r.left = sizedReply, length
	case minor > 0:
		r.framing = chunkedReply
	default:
		r.framing = closedReply
	}
	r.close = r.turn.req.Close || r.framing == closedReply || r.link.srv.ending.Load() || !r.turn.body.arrived() || hasToken(r.header["Connection"], "close")
	r.attach()
	r.out = r.head(r.out, length)
	if len(gathered) > 0 {
		_, _ = r.body(gathered)
	}
	if memory != nil {
		r.link.srv.outs.Put(memory)
	}
}

// bodyAllowed reports whether a status may come with a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// head appends status line and headers.
func (r *reply) head(b []byte, length int64) []byte {
	minor := r.turn.req.ProtoMinor
	b = appendStatus(b, minor, r.status)
	dated := false
	for name, values := range r.header {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Connection", "Trailer":
			continue // ours to say
		case "Date":
			dated = true
		}
		b = appendHeader(b, name, values)
	}
	if !dated {
		b = append(b, "Date: "...)
		b = r.link.srv.date.append(b, time.Now())
		b = append(b, '\r', '\n')
	}
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
	case minor == 0:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	return append(b, '\r', '\n')
}

// inform sends an informational response.
func (r *reply) inform(status int) {
	r.attach()
	b := appendStatus(r.out[len(r.out):], 1, status)
	for name, values := range r.header {
		if name != "Content-Length" && name != "Transfer-Encoding" && name != "Connection" {
			b = appendHeader(b, name, values)
		}
	}
	r.failed(r.link.write(append(b, '\r', '\n')))
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
	if r.err != nil || len(r.out) == 0 {
		return
	}
	r.failed(r.link.write(r.out))
	r.out = r.out[:0]
}

// failed notes the failure of a write: the client is gone, or as good as gone.
func (r *reply) failed(err error) {
	if err != nil && r.err == nil {
		r.err, r.close = err, true
		r.link.gone()
	}
}

// attach gets memory.
func (r *reply) attach() {
	if r.kept == nil {
		r.kept = r.link.srv.outs.Get().(*[]byte)
		r.out = (*r.kept)[:0]
	}
}

// detach gives the memory back; nothing is gathered.
func (r *reply) detach() {
	if r.kept == nil {
		return
	}
	if cap(r.out) <= keepOut {
		*r.kept = r.out[:0]
	}
	r.link.srv.outs.Put(r.kept)
	r.kept, r.out = nil, nil
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
