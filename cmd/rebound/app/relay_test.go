//go:build unix

package app_test

import (
	"context"
	"net"
	"sync"
	"testing"
)

// relay forwards connections to an address and returns its own address. Before it forwards a piece it calls there
// for bytes from clients, and back for bytes to them.
func relay(t *testing.T, to string, there, back func([]byte)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		l.Close()
		wg.Wait()
	})
	forward := func(dst, src net.Conn, show func([]byte)) {
		defer dst.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := src.Read(buf)
			show(buf[:n])
			if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			wg.Go(func() { forward(far, near, there) })
			wg.Go(func() { forward(near, far, back) })
		}
	})
	return l.Addr().String()
}
