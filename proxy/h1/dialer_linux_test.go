package h1_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/h1"
)

// TestDialer: the death of a peer is noticed by the system after seconds.
func TestDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := h1.NewDialer(time.Second).Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	const userTimeout = 0x12
	err = raw.Control(func(fd uintptr) {
		for name, c := range map[string]struct{ level, option, want int }{
			"TCP_USER_TIMEOUT": {syscall.IPPROTO_TCP, userTimeout, 10000},
			"SO_KEEPALIVE":     {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			"TCP_KEEPIDLE":     {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
			"TCP_KEEPINTVL":    {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 5},
			"TCP_KEEPCNT":      {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
		} {
			if got, err := syscall.GetsockoptInt(int(fd), c.level, c.option); got != c.want || err != nil {
				t.Errorf("%s: %d %v, want %d", name, got, err, c.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
