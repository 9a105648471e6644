//go:build !unix

package h1

import "net"

// probe cannot look at an idle socket here: the retry of a request whose
// connection turns out to be closed has to do.
type probe struct{}

func newProbe(net.Conn) *probe { return nil }

func (*probe) quiet() bool { return true }
