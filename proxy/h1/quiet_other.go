//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package h1

// quiet reports whether an idle connection has nothing to read. It returns true, because this system
// offers no check.
func (c *conn) quiet() bool { return true }
