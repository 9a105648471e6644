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
	"sync"
)

// insertFaults puts the step's faults into a stream. Their places count the content
// events of the original stream.
func (x *exchange) insertFaults(b *reply) {
	st := x.st
	if !st.cut.set && !st.fin.set && !st.stall.set && !st.errorEvent.set && !st.malformed.set && !st.noise.set {
		return
	}
	type edit struct {
		at    int
		apply func(at int)
	}
	var edits []edit
	// Edits that end the stream are listed first, so that others at the same place
	// are inserted before them.
	if st.cut.set {
		edits = append(edits, edit{b.eventAt(st.cut), func(at int) {
			b.events = append(b.events[:at], event{act: actBreak})
		}})
	}
	if st.fin.set {
		edits = append(edits, edit{b.eventAt(st.fin), func(at int) { b.events = b.events[:at] }})
	}
	if st.errorEvent.set {
		edits = append(edits, edit{b.eventAt(st.errorEvent), func(at int) {
			b.events = b.events[:at]
			x.format().errorEvent(x, b)
		}})
	}
	insertEvent := func(s share, data string) {
		if s.set {
			edits = append(edits, edit{b.eventAt(s), func(at int) {
				from := len(b.buf)
				if name := x.format().textEvent; name != "" {
					b.put("event: ", name, "\n")
				}
				b.put(`data: `, data)
				b.add(from, 0)
				ev := b.events[len(b.events)-1]
				b.events = slices.Insert(b.events[:len(b.events)-1], at, ev)
			}})
		}
	}
	insertEvent(st.malformed, x.format().textStart+`\u00zz`)
	insertEvent(st.noise, "keeping the line open")
	if st.stall.set {
		edits = append(edits, edit{b.eventAt(st.stall), func(at int) {
			b.events = slices.Insert(b.events, at, event{act: actStall, pause: st.stallFor})
		}})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return b.at - a.at })
	for _, e := range edits {
		e.apply(e.at)
	}
}

// appendChatError adds an error event of a chat completion.
func appendChatError(x *exchange, b *reply) {
	b.line("data: "+x.streamError().body(x.q.n), 0)
}

// streamError returns the error inside a 200.
func (x *exchange) streamError() *apiError {
	e := &apiError{
		message: "The server had an error while processing your request. Sorry about that!",
		typ:     "server_error", code: "server_error",
	}
	return e.overridden(x.st)
}

// raw takes the connection from net/http and passes it to use. Closing the server closes the connection too, which ends
// use with an error of the connection.
func (x *exchange) raw(use func(net.Conn) error) error {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return errBroken // no real connection: break off instead
	}
	stop := context.AfterFunc(x.ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	if use(conn) != nil {
		return errGone
	}
	return nil
}

// reset closes the connection with a RST.
func (x *exchange) reset() error {
	return x.raw(func(conn net.Conn) error {
		if c, ok := conn.(*net.TCPConn); ok {
			return c.SetLinger(0)
		}
		return nil
	})
}

// sendWrongLength sends more than the Content-Length says: twice the stated half, or
// the answer twice. A client that reuses the connection reads the rest.
func (x *exchange) sendWrongLength(ctype string, body []byte) error {
	x.status = http.StatusOK
	length, times := len(body), 2
	if x.st.fault == faultOver {
		length, times = len(body)/2, 1
	}
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", ctype, length)
	return x.raw(func(conn net.Conn) error {
		_, err := conn.Write(bytes.Repeat(append([]byte(head), body...), times))
		if err == nil {
			// Wait until the peer closes it or sends its next request, or the server closes.
			_, _ = conn.Read(make([]byte, 1))
		}
		return err
	})
}

// endlessHeaders sends header lines until the peer closes the connection.
func (x *exchange) endlessHeaders() error {
	x.status = http.StatusOK
	return x.raw(func(conn net.Conn) error {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
		for n := 0; err == nil; {
			var b []byte
			for range 128 {
				b = fmt.Appendf(b, "X-Mock-%d: %s\r\n", n, "abcdefghijklmnopqrstuvwxyz0123456789")
				n++
			}
			_, err = conn.Write(b)
		}
		return err
	})
}

// badChunk sends a body whose second chunk has an invalid length.
func (x *exchange) badChunk() error {
	x.status = http.StatusOK
	ctype, piece := typeJSON[0], `{"id":"chatcmpl-mock-`+decimal(x.q.n)+`","object":"chat.completion",`
	if x.q.stream {
		ctype, piece = typeStream[0], ": ok\n\n"
	}
	return x.raw(func(conn net.Conn) error {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz;\r\nnonsense\r\n", ctype, len(piece), piece)
		return err
	})
}

// statusJunk sends something that is not HTTP.
func (x *exchange) statusJunk() error {
	return x.raw(func(conn net.Conn) error {
		_, err := io.WriteString(conn, "HTTQ/9.z banana\r\n\x00\x01junk\r\n\r\n")
		return err
	})
}

// endlessLine sends one data line, or one JSON string, that never ends.
func (x *exchange) endlessLine() error {
	x.head(x.q.stream)
	start := x.format().textStart
	if x.q.stream {
		start = "data: " + start
	}
	if err := x.out.write([]byte(start)); err != nil {
		return err
	}
	filler := bytes.Repeat([]byte("never ending "), 2048)
	for {
		if err := x.out.write(filler); err != nil {
			return err
		}
	}
}

// The bomb is many gzip members, each compressed by about 1:1000, which is the limit
// of gzip.
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

// bomb sends about a megabyte that expands to a gigabyte of white space in an
// otherwise complete answer.
func (x *exchange) bomb() error {
	start, end := `{"id":"chatcmpl-mock-`+decimal(x.q.n)+`","object":"chat.completion","choices":[`, `]}`
	if x.q.stream {
		start, end = "data: "+start, end+"\n\ndata: [DONE]\n\n"
	}
	x.w.Header()["Content-Encoding"] = []string{"gzip"}
	x.head(x.q.stream)
	if err := x.out.write(gzipped([]byte(start))); err != nil {
		return err
	}
	for range bombMembers {
		if err := x.out.write(bombFiller()); err != nil {
			return err
		}
	}
	return x.out.write(gzipped([]byte(end)))
}
