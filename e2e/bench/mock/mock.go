package mock

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"
)

const maxBody = 16 << 20

var errTooLarge = errors.New("request body too large")

// Serve answers on every connection that l accepts, until l is closed; it
// returns the listener's error.
func Serve(l net.Listener) error {
	for {
		socket, err := l.Accept()
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}
		c := &conn{socket: socket, in: bufio.NewReaderSize(socket, 4<<10)}
		go c.serve()
	}
}

// conn is one connection with the buffers that its requests share.
type conn struct {
	socket net.Conn
	in     *bufio.Reader
	body   []byte
	event  []byte
	out    []byte
}

// serve answers one request after the other. Any error ends the connection:
// the other side sees it as one.
func (c *conn) serve() {
	defer c.socket.Close()
	for {
		h, err := c.readHead()
		if err != nil || h.length > maxBody {
			return
		}
		c.body = slices.Grow(c.body[:0], h.length)[:h.length]
		if _, err := io.ReadFull(c.in, c.body); err != nil {
			return
		}
		if err := c.answer(h); err != nil || h.close {
			return
		}
	}
}

func (c *conn) answer(h head) error {
	if !h.chat {
		_, err := io.WriteString(c.socket, notFound)
		return err
	}
	o := parseOrder(c.body)
	if o.latency > 0 {
		time.Sleep(o.latency)
	}
	if o.stream {
		return c.writeStream(o, len(c.body)/4)
	}
	return c.writeJSON(o, len(c.body)/4)
}

// head is what matters of a request's head.
type head struct {
	chat   bool // POST /v1/chat/completions
	length int  // of the body
	close  bool // after the answer
}

func (c *conn) readHead() (head, error) {
	line, err := c.readLine()
	if err != nil {
		return head{}, err
	}
	h := head{
		chat:  bytes.HasPrefix(line, []byte("POST /v1/chat/completions ")),
		close: bytes.HasSuffix(line, []byte(" HTTP/1.0")),
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
		switch len(name) { // most names are of no interest
		case len("connection"):
			if bytes.EqualFold(name, []byte("connection")) {
				h.close = bytes.EqualFold(value, []byte("close"))
			}
		case len("content-length"):
			if bytes.EqualFold(name, []byte("content-length")) {
				h.length, err = strconv.Atoi(string(value))
				if err != nil || h.length < 0 {
					return head{}, errTooLarge
				}
			}
		case len("transfer-encoding"):
			if bytes.EqualFold(name, []byte("transfer-encoding")) {
				return head{}, errors.New("request body without a declared length")
			}
		}
	}
}

// readLine returns the next line without its end; it holds until the next read.
func (c *conn) readLine() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
