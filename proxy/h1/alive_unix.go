//go:build unix

package h1

import (
	"net"
	"syscall"
)

// probe looks at an idle socket with one system call that never waits.
type probe struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool // made once, so that a look allocates nothing
	ok   bool
	b    [1]byte
}

func newProbe(nc net.Conn) *probe {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	p := &probe{raw: raw}
	p.look = func(fd uintptr) bool {
		// The byte is lost, but a connection that has one to read is not used any more.
		_, err := syscall.Read(int(fd), p.b[:])
		p.ok = err == syscall.EAGAIN || err == syscall.EINTR
		return true
	}
	return p
}

// quiet reports that there is nothing to read, not even the end. Without a
// way to look, it is assumed.
func (p *probe) quiet() bool {
	if p == nil {
		return true
	}
	p.ok = false
	return p.raw.Read(p.look) == nil && p.ok
}
