package h1

import (
	"net"
	"syscall"
	"time"
)

// Limits for detecting a dead peer. A machine that loses power, or a firewall that drops a connection
// from its table, sends no FIN: without these limits a request waits as long as the system
// retransmits, a quarter of an hour.
const (
	// unackedTime limits how long sent bytes may stay unacknowledged (TCP_USER_TIMEOUT, RFC 5482):
	// enough for five retransmissions.
	unackedTime = 10 * time.Second
	// probeIdle is the silence before keep-alive probes begin (RFC 9293, section 3.8.4).
	probeIdle  = 15 * time.Second
	probeEvery = 5 * time.Second
	probes     = 3
)

// NewDialer returns a dialer whose connections fail soon after their peer has died.
func NewDialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeEvery, Count: probes},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { limitUnacked(fd, unackedTime) })
		},
	}
}
