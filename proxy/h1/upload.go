package h1

import (
	"io"
	"strconv"
	"sync"
	"time"
)

// upload sends a body that is large or not in memory, in a goroutine of its
// own, since the server may answer, or fall silent, before all of it is sent.
type upload struct {
	c    *conn
	o    *outgoing     // not to be used after run
	body io.ReadCloser // o's
	mem  bool          // o's
	done chan struct{} // closed when neither body nor connection is touched any more

	closing sync.Once // of the body

	mu      sync.Mutex
	err     error // why the body was not sent; final once done is closed
	replied bool  // a response's head was read
}

// startUpload takes over o, which is given to free at the end.
func startUpload(c *conn, o *outgoing, free func(*outgoing)) *upload {
	u := &upload{c: c, o: o, body: o.body, mem: o.memory, done: make(chan struct{})}
	go func() {
		defer close(u.done)
		err := u.run()
		free(o)
		u.closeBody()
		if err != nil {
			u.fail(err)
		}
	}()
	return u
}

func (u *upload) closeBody() {
	u.closing.Do(func() { _ = u.body.Close() })
}

// fail makes the error known to whoever waits for the response. If the server
// cannot be written to, it may have said why.
func (u *upload) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
	if _, ours := err.(*RequestBodyError); ours {
		u.c.abort()
	} else if !u.replied {
		_ = u.c.nc.SetReadDeadline(time.Now().Add(lastWords))
	}
}

// answered tells that the response's head was read: a failure of the upload
// must not disturb the body.
func (u *upload) answered() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.replied = true
	if u.err != nil {
		_ = u.c.nc.SetReadDeadline(time.Time{})
	}
}

// failure is why the body was not sent, if that is known by now.
func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// complete reports whether all was sent, and grants the last write a moment
// to return: the server has read it if it has answered.
func (u *upload) complete() bool {
	select {
	case <-u.done:
	default:
		t := time.NewTimer(uploadGrace)
		defer t.Stop()
		select {
		case <-u.done:
		case <-t.C:
			return false
		}
	}
	return u.failure() == nil
}

// abandon returns when a body in memory is not touched any more; its
// connection must be closed. Other bodies are closed, which may have to wait
// for whoever reads them.
func (u *upload) abandon() {
	if u.mem {
		<-u.done
		return
	}
	select {
	case <-u.done:
	default:
		go u.closeBody()
	}
}

// run writes what o holds and the body.
func (u *upload) run() error {
	switch {
	case u.o.length < 0:
		return u.chunked()
	case u.o.memory:
		if w, ok := u.o.body.(io.WriterTo); ok {
			return u.direct(w)
		}
	}
	return u.copied()
}

// direct lets the body write its own memory: nothing is copied but its
// beginning, which goes out with the head.
func (u *upload) direct(w io.WriterTo) error {
	s := &sink{u: u, left: u.o.length}
	_, err := w.WriteTo(s)
	switch {
	case s.err != nil:
		return s.err
	case err != nil:
		return &RequestBodyError{err}
	case s.left > 0:
		return &RequestBodyError{io.ErrUnexpectedEOF}
	}
	return nil
}

// sink is where direct writes to.
type sink struct {
	u    *upload
	left int64
	err  error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if int64(len(p)) > s.left {
		s.err = &RequestBodyError{errBodyTooLong}
		return 0, s.err
	}
	o, rest := s.u.o, p
	if len(o.buf) > 0 {
		n := min(len(p), 16<<10)
		o.buf, rest = append(o.buf, p[:n]...), p[n:]
		s.err = s.u.c.write(o.buf)
		o.buf = o.buf[:0]
	}
	if s.err == nil {
		s.err = s.u.c.write(rest)
	}
	if s.err != nil {
		return 0, s.err
	}
	s.left -= int64(len(p))
	return len(p), nil
}

// copied sends a body of known length through the buffer. The head does not
// wait for a slow body.
func (u *upload) copied() error {
	o := u.o
	if err := u.flush(); err != nil {
		return err
	}
	b := room(&o.buf)
	for left := o.length; ; {
		n, err := o.body.Read(b)
		if left -= int64(n); left < 0 {
			return &RequestBodyError{errBodyTooLong}
		}
		if n > 0 {
			if err := u.c.write(b[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			if left > 0 {
				return &RequestBodyError{io.ErrUnexpectedEOF}
			}
			return nil
		}
		if err != nil {
			return &RequestBodyError{err}
		}
	}
}

// chunked sends a body of unknown length, one chunk for each read, so that
// nothing is held back.
func (u *upload) chunked() error {
	const sizeLine = 10 // eight digits and CRLF
	o := u.o
	if len(o.first) == 0 {
		if err := u.flush(); err != nil {
			return err
		}
	} else {
		o.buf = append(o.buf, "1\r\n"...)
		o.buf = append(append(o.buf, o.first...), "\r\n"...)
		if err := u.flush(); err != nil {
			return err
		}
	}
	b := room(&o.buf)
	for {
		n, err := o.body.Read(b[sizeLine : len(b)-2])
		if n > 0 {
			size := strconv.AppendInt(b[:0], int64(n), 16)
			size = append(size, '\r', '\n')
			start := sizeLine - len(size)
			copy(b[start:], size)
			end := sizeLine + n + copy(b[sizeLine+n:], "\r\n")
			if err := u.c.write(b[start:end]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return u.c.write([]byte("0\r\n\r\n"))
		}
		if err != nil {
			return &RequestBodyError{err}
		}
	}
}

func (u *upload) flush() error {
	err := u.c.write(u.o.buf)
	u.o.buf = u.o.buf[:0]
	return err
}

// room returns the buffer's whole memory, at least 32 KiB.
func room(buf *[]byte) []byte {
	if cap(*buf) < 32<<10 {
		*buf = make([]byte, 0, 32<<10)
	}
	return (*buf)[:cap(*buf)]
}
