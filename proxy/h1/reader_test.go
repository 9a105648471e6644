package h1

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestNoMemoryWhileWaiting: between the events of a stream a connection has no
// buffer of its own, wherever its segments end, and the bytes are all there.
func TestNoMemoryWhileWaiting(t *testing.T) {
	const event = "data: {\"delta\":\" word\"}\n\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(event), event)
	for _, c := range []struct {
		name    string
		caller  int
		segment string // after each of these the server is silent
		keeps   bool   // a part of the framing or of the data has to wait
	}{
		{"whole chunks", 4 << 10, chunk, false},
		{"several chunks", 4 << 10, chunk + chunk + chunk, false},
		{"small memory", 100, chunk, false},
		{"smaller than the chunk", 10, chunk, true},
		{"in the next chunk's size", 4 << 10, chunk + "1", true},
		{"before the chunk's last CRLF", 4 << 10, chunk[:len(chunk)-2], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reads := newReads()
			src := &segments{list: []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", c.segment}}
			x := &exchange{t: &Transport{cfg: Config{MaxHeaderBytes: fuzzLimit}}, c: &conn{in: reader{src: src, reads: &reads}}, req: &http.Request{Method: "GET"}}
			if err := x.readHead(); err != nil {
				t.Fatal(err)
			}
			if x.c.in.buf != nil {
				t.Error("a buffer is kept after the head")
			}
			b := bytes.Repeat([]byte{'?'}, c.caller)
			n, err := x.payload.Read(b)
			if got := string(b[:n]); err != nil || got == "" || !strings.HasPrefix(strings.Repeat(event, 3), got) {
				t.Fatalf("%q, %v", got, err)
			}
			if kept := x.c.in.buf != nil; kept != c.keeps || x.c.in.lent {
				t.Errorf("a buffer is kept: %v, of the caller: %v", kept, x.c.in.lent)
			}
		})
	}
}

// segments yields one string for each Read.
type segments struct{ list []string }

func (s *segments) Read(b []byte) (int, error) {
	if len(s.list) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.list[0])
	s.list = s.list[1:]
	return n, nil
}
