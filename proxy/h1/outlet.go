package h1

import (
	"net"
	"time"
)

// outlet writes to a connection. A write that makes no progress ends between
// timeout and half as much again. One goroutine at a time may use it.
type outlet struct {
	nc      net.Conn
	timeout time.Duration // not positive: none
	by      time.Time     // the deadline that is set
	fixed   bool          // it replaces the time-out
}

// write writes all of p, in pieces that each have at least the whole time-out.
func (o *outlet) write(p []byte) error {
	for len(p) > 0 {
		piece := p[:min(len(p), writePiece)]
		if err := o.allow(); err != nil {
			return err
		}
		if _, err := o.nc.Write(piece); err != nil {
			return err
		}
		p = p[len(piece):]
	}
	return nil
}

// writeAll writes small pieces together with a large one: no byte is copied
// unless the large one has to be written in several steps.
func (o *outlet) writeAll(pieces net.Buffers) error {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	if n > writePiece {
		for _, p := range pieces {
			if err := o.write(p); err != nil {
				return err
			}
		}
		return nil
	}
	if err := o.allow(); err != nil {
		return err
	}
	_, err := pieces.WriteTo(o.nc)
	return err
}

// allow sees to it that a write has the whole time-out, and at most half of it
// more: setting a deadline costs a tenth of a write.
func (o *outlet) allow() error {
	if o.timeout <= 0 || o.fixed {
		return nil
	}
	now := time.Now()
	if o.by.Sub(now) >= o.timeout {
		return nil
	}
	return o.limit(now.Add(o.timeout + o.timeout/2))
}

// limit sets the deadline; the zero time means none.
func (o *outlet) limit(t time.Time) error {
	o.by = t
	return o.nc.SetWriteDeadline(t)
}
