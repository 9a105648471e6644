//go:build unix

package h1

import (
	"io"
	"net"
	"os"
	"syscall"
)

// socket is a connection below package net: it can be looked at without a wait,
// and a request and its answer cost one system call less there.
type socket struct {
	raw  syscall.RawConn
	tcp  *net.TCPConn // nil if something is in between: it is looked at only
	free func(*outgoing)
	look func(fd uintptr) bool // these two are made once, so that their use allocates nothing
	turn func(fd uintptr) bool

	quiet bool // what the look has found
	b     [1]byte

	// Of ask, while it runs.
	o     *outgoing // until it is written
	in    *reader
	wrote int
	err   error
}

// newSocket returns nil if there is nothing to look at. Requests that were
// written are given to free.
func newSocket(nc net.Conn, free func(*outgoing)) *socket {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &socket{raw: raw, free: free}
	s.tcp, _ = nc.(*net.TCPConn)
	s.look = func(fd uintptr) bool {
		s.peek(int(fd))
		return true
	}
	s.turn = s.step
	return s
}

// peek notes whether there is nothing to read, not even the end.
func (s *socket) peek(fd int) {
	// The byte is lost, but a connection that has one to read is not used any more.
	_, err := syscall.Read(fd, s.b[:])
	s.quiet = err == syscall.EAGAIN || err == syscall.EINTR
}

// alive reports that there is nothing to read, not even the end. Without a
// way to look, it is assumed.
func (s *socket) alive() bool {
	if s == nil {
		return true
	}
	s.quiet = false
	return s.raw.Read(s.look) == nil && s.quiet
}

// asks reports whether ask can be used.
func (s *socket) asks() bool { return s != nil && s.tcp != nil }

// ask is, in one, alive, the write of a request that is all in o, and the first
// read of its answer into in, for which it waits. It is false if the connection
// is dead: nothing is written then. Otherwise left is what could not be written
// without a wait; if there is nothing left, o was given away, and there was a
// read. The error is that of the write; what ended the wait is in.err.
//
// That the look comes first makes the wait safe: package net forgets, as a read
// begins, what it was told of the socket before, and the look shows that there
// was nothing worth to be told.
func (s *socket) ask(o *outgoing, in *reader) (alive bool, left []byte, err error) {
	s.quiet, s.o, s.in, s.wrote, s.err = false, o, in, 0, nil
	rerr := s.raw.Read(s.turn)
	if s.o != nil {
		left = o.buf[s.wrote:]
	} else if rerr != nil {
		if op, ok := rerr.(*net.OpError); ok {
			op.Op = "read"
		}
		in.err = rerr
	}
	err = s.err
	s.o, s.in, s.err = nil, nil, nil
	return s.quiet, left, err
}

// step is called once, and again whenever there may be something to read, until
// it returns true.
func (s *socket) step(fd uintptr) bool {
	if s.o == nil {
		return s.hear(int(fd))
	}
	s.peek(int(fd))
	return !s.quiet || !s.tell(int(fd))
}

// tell writes what can be written without a wait and reports whether that was everything.
func (s *socket) tell(fd int) bool {
	for s.wrote < len(s.o.buf) && s.err == nil {
		n, err := syscall.Write(fd, s.o.buf[s.wrote:])
		switch {
		case n > 0:
			s.wrote += n
		case err == syscall.EINTR:
		case err == nil || err == syscall.EAGAIN:
			return false
		default:
			s.err = s.failure("write", err)
		}
	}
	s.free(s.o) // now: the answer may be long in coming
	s.o = nil
	return s.err == nil
}

// hear reads once and reports whether that had a result.
func (s *socket) hear(fd int) bool {
	in := s.in
	if in.buf == nil {
		in.attach(readBuffer)
	}
	for {
		n, err := syscall.Read(fd, in.buf[in.w:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			in.err = s.failure("read", err)
		case n == 0:
			in.err = io.EOF
		default:
			in.w += n
		}
		return true
	}
}

// failure is what package net would have made of a system call's error.
func (s *socket) failure(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.tcp.LocalAddr(), Addr: s.tcp.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}
