//go:build !unix

package h1

import "net"

// socket is nothing here. An idle one cannot be looked at: the retry of a
// request whose connection turns out to be closed has to do.
type socket struct{}

func newSocket(net.Conn, func(*outgoing)) *socket { return nil }

func (*socket) alive() bool { return true }

func (*socket) asks() bool { return false }

func (*socket) ask(*outgoing, *reader) (alive bool, left []byte, err error) { return false, nil, nil }
