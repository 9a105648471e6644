package upstreamtest

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// forever is a wait that only the peer or the server's end finishes.
const forever time.Duration = -1

// How an exchange ends when it does not end well.
var (
	// errBroken asks for the connection to be broken, as the script wants it.
	errBroken = errors.New("the script breaks the connection")
	// errGone says that the peer left or the server was closed.
	errGone = errors.New("the peer is gone")
)

var pingComment = []byte(": ping\n\n")

// sink writes one answer's body in the way the step asks for. One goroutine
// owns it.
type sink struct {
	ctx   context.Context
	w     http.ResponseWriter
	flush http.Flusher

	split int           // bytes per write; 0: all at once
	hold  bool          // collect everything for one write
	pings time.Duration // comments while waiting, once a stream has begun
	begun bool          // headers of a stream are out

	held []byte
}

// begin sends the headers at once.
func (k *sink) begin(stream bool) {
	if k.flush != nil {
		k.flush.Flush()
	}
	k.begun = stream
}

// send writes one piece of the body, at once or as the step wants it.
func (k *sink) send(b []byte) error {
	if k.hold {
		k.held = append(k.held, b...)
		return nil
	}
	return k.write(b)
}

// release writes what was held.
func (k *sink) release() error {
	b := k.held
	k.held = k.held[:0]
	return k.write(b)
}

func (k *sink) write(b []byte) error {
	size := len(b)
	if k.split > 0 {
		size = k.split
	}
	for len(b) > 0 {
		if k.ctx.Err() != nil {
			return errGone
		}
		n := min(size, len(b))
		if _, err := k.w.Write(b[:n]); err != nil {
			return errGone
		}
		if k.flush != nil {
			k.flush.Flush()
		}
		b = b[n:]
	}
	return nil
}

// wait lets time pass, unless the peer leaves before.
func (k *sink) wait(d time.Duration) error {
	if d == 0 {
		return nil
	}
	var end, tick <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		end = t.C
	}
	if k.begun && k.pings > 0 {
		t := time.NewTicker(k.pings)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-k.ctx.Done():
			return errGone
		case <-end:
			return nil
		case <-tick:
			if err := k.write(pingComment); err != nil {
				return err
			}
		}
	}
}
