package h1

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
)

// upload sends a request. It sends a small one at once. It sends a body that is large or not in memory
// in a separate goroutine, because the server may answer, or stop reading, before all of it is sent.
type upload struct {
	c      *conn
	body   io.ReadCloser // nil without one
	length int64         // -1: chunked
	memory bool
	done   chan struct{} // closed when neither body nor connection is used any more; nil if all was sent at once

	closing sync.Once // of the body

	mu      sync.Mutex
	err     error // why the request was not sent completely; final once done is closed
	replied bool  // a response head was read
}

// start sends the request, or starts sending it.
func (u *upload) start(head []byte) {
	if u.body == nil || u.memory && 0 <= u.length && u.length <= inlineBody {
		u.run(head)
		return
	}
	u.done = make(chan struct{})
	go func() {
		defer close(u.done)
		u.run(head)
	}()
}

func (u *upload) run(head []byte) {
	w := &bodyWriter{c: u.c, head: head, left: u.length}
	err := w.send(u.body, u.memory)
	u.c.written()
	u.closeBody()
	if err == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
	if errors.As(err, new(*RequestBodyError)) {
		u.c.abort()
	} else if !u.replied { // if writing failed, the server may have sent a response with the reason
		_ = u.c.nc.SetReadDeadline(time.Now().Add(lastWords))
	}
}

func (u *upload) closeBody() {
	if u.body != nil {
		u.closing.Do(func() { _ = u.body.Close() })
	}
}

// answered records that the response head was read, so that a failure of the upload does not end the
// reading of the response's body.
func (u *upload) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.replied = true
	if u.err != nil {
		_ = u.c.nc.SetReadDeadline(time.Time{})
	}
}

// failure returns why the request was not sent completely, as far as is known.
func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// complete reports whether the request was sent completely. It waits briefly for the last write to
// return: a server that has answered has read it.
func (u *upload) complete() bool {
	if u.done != nil {
		select {
		case <-u.done:
		case <-time.After(uploadGrace):
			return false
		}
	}
	return u.failure() == nil
}

// abandon waits until a body in memory is no longer used; the connection must be closed. It closes
// other bodies in the background, because that may have to wait for a reader.
func (u *upload) abandon() {
	switch {
	case u.done == nil:
	case u.memory:
		<-u.done
	default:
		go u.closeBody()
	}
}

// bodyWriter writes a body with its framing to a connection.
type bodyWriter struct {
	c    *conn
	head []byte // of the request, until it was written
	left int64  // remaining bytes of the body; negative: chunked
	err  error
}

// send writes the head and the whole body, which may be nil. Only a body in memory is written together
// with the head.
func (w *bodyWriter) send(body io.Reader, memory bool) error {
	if !memory || body == nil {
		if err := w.flush(); err != nil || body == nil {
			return err
		}
	}
	chunked := w.left < 0
	_, err := io.Copy(w, body)
	switch {
	case w.err != nil:
		return w.err
	case err != nil:
		return &RequestBodyError{err}
	case w.left > 0:
		return &RequestBodyError{io.ErrUnexpectedEOF}
	}
	if err := w.flush(); err != nil || !chunked {
		return err
	}
	return w.c.write([]byte("0\r\n\r\n"))
}

func (w *bodyWriter) flush() error {
	head := w.head
	if w.head = nil; len(head) == 0 {
		return nil
	}
	return w.c.write(head)
}

// Write implements io.Writer. It sends the request's head with the first bytes.
func (w *bodyWriter) Write(p []byte) (n int, err error) {
	for w.err == nil && n < len(p) {
		piece := p[n:min(len(p), n+writePiece)]
		switch {
		case w.left < 0:
			size := append(strconv.AppendInt(w.head, int64(len(piece)), 16), "\r\n"...)
			w.err = w.c.write(size, piece, []byte("\r\n"))
		case int64(len(piece)) > w.left:
			w.err = &RequestBodyError{errBodyTooLong}
		default:
			w.left -= int64(len(piece))
			w.err = w.c.write(w.head, piece)
		}
		if w.err == nil {
			n += len(piece)
		}
		w.head = nil
	}
	return n, w.err
}

var errBodyTooLong = errors.New("body is longer than its announced length")
