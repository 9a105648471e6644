//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package h1

// quiet reports that there is nothing to read from an idle connection. Here
// there is no way to look, so it is assumed.
func (c *conn) quiet() bool { return true }
