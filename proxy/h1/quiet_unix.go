//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package h1

import "syscall"

// quiet reports whether an idle connection has nothing to read, not even its end. It returns true if
// the connection cannot be checked.
func (c *conn) quiet() bool {
	sc, ok := c.tcp.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EINTR
		return true
	})
	return err == nil && quiet
}
