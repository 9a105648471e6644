package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// disturb puts the faults of the step into a stream. Their places refer to the
// undisturbed events that carry the answer.
func (x *exchange) disturb(b *reply) {
	st := x.st
	if !st.cut.set && !st.fin.set && !st.stall.set && !st.errorEvent.set && !st.malformed.set && !st.noise.set {
		return
	}
	type edit struct {
		at    int
		apply func(at int)
	}
	var edits []edit
	// At the same place what ends the stream comes first in this list: the
	// others are inserted before it.
	if st.cut.set {
		edits = append(edits, edit{b.place(st.cut), func(at int) {
			b.events = append(b.events[:at], event{act: actBreak})
		}})
	}
	if st.fin.set {
		edits = append(edits, edit{b.place(st.fin), func(at int) { b.events = b.events[:at] }})
	}
	if st.errorEvent.set {
		edits = append(edits, edit{b.place(st.errorEvent), func(at int) {
			b.events = b.events[:at]
			x.format().fail(x, b)
		}})
	}
	one := func(s share, data string) {
		if s.set {
			edits = append(edits, edit{b.place(s), func(at int) {
				from := len(b.buf)
				if name := x.format().event; name != "" {
					b.put("event: ", name, "\n")
				}
				b.put(`data: `, data)
				b.add(from, 0)
				ev := b.events[len(b.events)-1]
				b.events = slices.Insert(b.events[:len(b.events)-1], at, ev)
			}})
		}
	}
	one(st.malformed, x.format().opening+`\u00zz`)
	one(st.noise, "keeping the line open")
	if st.stall.set {
		edits = append(edits, edit{b.place(st.stall), func(at int) {
			b.events = slices.Insert(b.events, at, event{act: actStall, pause: st.stallFor})
		}})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return b.at - a.at })
	for _, e := range edits {
		e.apply(e.at)
	}
}

// failChat adds an error event of a chat completion.
func failChat(x *exchange, b *reply) {
	from := len(b.buf)
	b.buf = x.streamError().appendTo(append(b.buf, "data: "...), x.q.n)
	b.add(from, 0)
}

// streamError is the error inside a 200.
func (x *exchange) streamError() *apiError {
	e := &apiError{
		message: "The server had an error while processing your request. Sorry about that!",
		typ:     "server_error", code: "server_error",
	}
	return e.overridden(x.st)
}

// raw takes the connection from net/http. The returned function must be called
// at the end; until then the connection also closes when the server does.
func (x *exchange) raw() (net.Conn, func(), error) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return nil, nil, errBroken // no real connection: the nearest is to break off
	}
	stop := context.AfterFunc(x.ctx, func() { conn.Close() })
	return conn, func() { stop(); conn.Close() }, nil
}

// reset closes the connection so that the peer gets a RST.
func (x *exchange) reset() error {
	conn, done, err := x.raw()
	if err != nil {
		return err
	}
	defer done()
	if c, ok := conn.(*net.TCPConn); ok {
		return c.SetLinger(0)
	}
	return nil
}

// loose sends a whole answer whose length says less than what comes: half of it,
// or one of two. Whoever uses the connection again finds the rest there.
func (x *exchange) loose(ctype string, body []byte) error {
	conn, done, err := x.raw()
	if err != nil {
		return err
	}
	defer done()
	x.status = http.StatusOK
	length, times := len(body), 2
	if x.st.fault == faultOver {
		length, times = len(body)/2, 1
	}
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", ctype, length)
	if _, err := conn.Write(bytes.Repeat(append([]byte(head), body...), times)); err != nil {
		return errGone
	}
	// Until the peer closes it, sends its next request, or the server ends.
	_, _ = conn.Read(make([]byte, 1))
	return nil
}

// endlessHeaders sends header lines until the peer has had enough.
func (x *exchange) endlessHeaders() error {
	conn, done, err := x.raw()
	if err != nil {
		return err
	}
	defer done()
	x.status = http.StatusOK
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"); err != nil {
		return errGone
	}
	var b []byte
	for n := 0; ; {
		b = b[:0]
		for range 128 {
			b = fmt.Appendf(b, "X-Mock-%d: %s\r\n", n, "abcdefghijklmnopqrstuvwxyz0123456789")
			n++
		}
		if _, err := conn.Write(b); err != nil {
			return errGone
		}
	}
}

// badChunk sends a body whose second chunk has no length.
func (x *exchange) badChunk() error {
	conn, done, err := x.raw()
	if err != nil {
		return err
	}
	defer done()
	x.status = http.StatusOK
	ctype, piece := typeJSON[0], `{"id":"chatcmpl-mock-`+strconv.FormatInt(x.q.n, 10)+`","object":"chat.completion",`
	if x.q.stream {
		ctype, piece = typeStream[0], ": ok\n\n"
	}
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz;\r\nnonsense\r\n", ctype,
		len(piece), piece); err != nil {
		return errGone
	}
	return nil
}

// statusJunk sends something that is not HTTP.
func (x *exchange) statusJunk() error {
	conn, done, err := x.raw()
	if err != nil {
		return err
	}
	defer done()
	if _, err := io.WriteString(conn, "HTTQ/9.z banana\r\n\x00\x01junk\r\n\r\n"); err != nil {
		return errGone
	}
	return nil
}

// endlessLine sends one data line, or one JSON string, that never ends.
func (x *exchange) endlessLine() error {
	x.head(x.q.stream)
	start := x.format().opening
	if x.q.stream {
		start = "data: " + start
	}
	if err := x.k.write([]byte(start)); err != nil {
		return err
	}
	filler := bytes.Repeat([]byte("never ending "), 2048)
	for {
		if err := x.k.write(filler); err != nil {
			return err
		}
	}
}

// The bomb is many gzip members, each about a thousand times smaller than what
// it holds; gzip cannot do better.
const (
	bombMember  = 1 << 20
	bombMembers = 1 << 10
)

var bombFiller = sync.OnceValue(func() []byte {
	return gzipped(bytes.Repeat([]byte{' '}, bombMember))
})

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	z.Write(b) // a bytes.Buffer does not fail
	z.Close()
	return out.Bytes()
}

// bomb sends about a megabyte that expands to a gigabyte of white space inside
// an otherwise complete answer.
func (x *exchange) bomb() error {
	start, end := `{"id":"chatcmpl-mock-`+strconv.FormatInt(x.q.n, 10)+`","object":"chat.completion","choices":[`, `]}`
	if x.q.stream {
		start, end = "data: "+start, end+"\n\ndata: [DONE]\n\n"
	}
	x.w.Header()["Content-Encoding"] = []string{"gzip"}
	x.head(x.q.stream)
	if err := x.k.write(gzipped([]byte(start))); err != nil {
		return err
	}
	for range bombMembers {
		if err := x.k.write(bombFiller()); err != nil {
			return err
		}
	}
	return x.k.write(gzipped([]byte(end)))
}
