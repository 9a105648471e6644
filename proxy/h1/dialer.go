package h1

import (
	"net"
	"syscall"
	"time"
)

// How soon the death of a peer that says nothing any more is noticed. A machine that loses its
// power, or a firewall that forgets a connection, sends no end: without these a request waits for
// as long as the system sends its bytes again, a quarter of an hour.
const (
	// unackedTime is how long sent bytes may stay without an acknowledgement (TCP_USER_TIMEOUT,
	// RFC 5482): enough for five repetitions.
	unackedTime = 10 * time.Second
	// probeIdle is the silence after which a peer that owes nothing is probed (RFC 9293, section 3.8.4).
	probeIdle  = 15 * time.Second
	probeEvery = 5 * time.Second
	probes     = 3
)

// NewDialer returns a dialer whose connections break soon after their peer has died.
func NewDialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeEvery, Count: probes},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { limitUnacked(fd, unackedTime) })
		},
	}
}
