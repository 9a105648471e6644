package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

var (
	errEventTooLong = errors.New("event too long")
	errStopped      = errors.New("stopped")
	errUnfinished   = errors.New("stream without [DONE]")
)

// statusError is an answer that was read whole but is not 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// conn is a client connection that sends its requests again and again. One
// goroutine at a time uses it; only interrupt may be called by others.
type conn struct {
	addr     string
	requests []rendered
	next     int // of the requests
	round    int // how often all of them were sent
	stream   bool
	timeout  time.Duration

	in     *bufio.Reader
	readAt time.Time // when the bytes in the buffer came
	line   []byte    // of an event, as far as it came
	chunks []time.Duration
	done   bool // [DONE] was seen

	mu      sync.Mutex // guards the changes of what follows
	socket  net.Conn
	stopped bool
}

// Read is the socket's, with a note of the time: parsing what came must not
// count as delay.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.socket.Read(p)
	c.readAt = time.Now()
	return n, err
}

// open makes sure of a connection and starts a request's timeout.
func (c *conn) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	if c.socket == nil {
		socket, err := net.DialTimeout("tcp", c.addr, c.timeout)
		if err != nil {
			return err
		}
		c.socket = socket
		if c.in == nil {
			c.in = bufio.NewReaderSize(c, 4<<10)
		}
		c.in.Reset(c)
	}
	return c.socket.SetDeadline(time.Now().Add(c.timeout))
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket != nil {
		c.socket.Close()
		c.socket = nil
	}
}

// interrupt makes the current request and all later ones fail.
func (c *conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.socket != nil {
		c.socket.SetDeadline(time.Unix(1, 0))
	}
}

// send writes the next request, on a new connection if there is none. After an
// error the connection is closed.
func (c *conn) send() error {
	err := c.open()
	if err == nil {
		_, err = c.socket.Write(c.requests[c.next].numbered(c.round))
		if c.next++; c.next == len(c.requests) {
			c.next, c.round = 0, c.round+1
		}
	}
	if err != nil {
		c.close()
	}
	return err
}

// receive reads the answer. The delays of its stamped chunks are in c.chunks
// until the next call. After any error but a statusError the connection is
// of no more use and closed.
func (c *conn) receive() error {
	c.chunks, c.line, c.done = c.chunks[:0], c.line[:0], false
	h, err := c.readHead()
	if err == nil {
		err = c.readBody(h)
	}
	if err != nil || h.close {
		c.close()
	}
	switch {
	case err != nil:
		return err
	case h.status != 200:
		return statusError(h.status)
	case c.stream && !c.done:
		return errUnfinished
	}
	return nil
}

// head is what matters of an answer's head.
type head struct {
	status  int
	length  int // of the body, -1 if not declared
	chunked bool
	close   bool // after this answer
}

func (c *conn) readHead() (head, error) {
	line, err := c.readLine()
	if err != nil {
		return head{}, err
	}
	version, rest, _ := bytes.Cut(line, []byte(" "))
	status, _, _ := bytes.Cut(rest, []byte(" "))
	h := head{length: -1, close: string(version) == "HTTP/1.0"}
	if h.status, err = strconv.Atoi(string(status)); err != nil || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return head{}, fmt.Errorf("status line %q", line)
	}
	for {
		line, err := c.readLine()
		if err != nil {
			return head{}, err
		}
		if len(line) == 0 {
			return h, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if h.length, err = strconv.Atoi(string(value)); err != nil || h.length < 0 {
				return head{}, fmt.Errorf("content length %q", value)
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			h.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("connection")):
			h.close = bytes.EqualFold(value, []byte("close"))
		}
	}
}

func (c *conn) readBody(h head) error {
	if !h.chunked {
		if h.length < 0 {
			return errors.New("answer without a length")
		}
		return c.take(h.length)
	}
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(line, []byte(";"))
		size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 31)
		if err != nil {
			return fmt.Errorf("chunk size %q", line)
		}
		if size == 0 {
			return c.skipTrailer()
		}
		if err := c.take(int(size)); err != nil {
			return err
		}
		if line, err = c.readLine(); err != nil {
			return err
		}
		if len(line) > 0 {
			return fmt.Errorf("%q behind a chunk", line)
		}
	}
}

func (c *conn) skipTrailer() error {
	for {
		line, err := c.readLine()
		if err != nil || len(line) == 0 {
			return err
		}
	}
}

// take consumes n bytes of the body.
func (c *conn) take(n int) error {
	for n > 0 {
		if _, err := c.in.Peek(1); err != nil {
			return unexpected(err)
		}
		part, _ := c.in.Peek(min(n, c.in.Buffered()))
		if c.stream {
			if err := c.feed(part); err != nil {
				return err
			}
		}
		n -= len(part)
		if _, err := c.in.Discard(len(part)); err != nil {
			return err
		}
	}
	return nil
}

// feed takes a part of an event stream, cut anywhere.
func (c *conn) feed(part []byte) error {
	for {
		line, rest, complete := bytes.Cut(part, []byte("\n"))
		if !complete {
			if len(c.line)+len(part) > 1<<20 {
				return errEventTooLong
			}
			c.line = append(c.line, part...)
			return nil
		}
		if len(c.line) > 0 {
			c.line = append(c.line, line...)
			line = c.line
		}
		c.event(line)
		c.line = c.line[:0]
		part = rest
	}
}

// event notes how long ago the chunk on this line was sent, if it says.
func (c *conn) event(line []byte) {
	data, found := bytes.CutPrefix(line, []byte("data:"))
	if !found {
		return
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		c.done = true
		return
	}
	_, stamp, _ := bytes.Cut(data, []byte("~"))
	stamp, _, found = bytes.Cut(stamp, []byte("~"))
	if !found {
		return
	}
	if sent, err := strconv.ParseInt(string(stamp), 10, 64); err == nil {
		c.chunks = append(c.chunks, time.Duration(c.readAt.UnixNano()-sent))
	}
}

// readLine returns the next line without its end; it holds until the next read.
func (c *conn) readLine() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, unexpected(err)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// unexpected says that an answer ended too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
