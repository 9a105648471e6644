package upstreamtest

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// forever is a wait until the peer leaves or the server closes.
const forever time.Duration = -1

var (
	// errBroken makes the server break the connection, as the script says.
	errBroken = errors.New("the script breaks the connection")
	// errGone means that the peer left or the server was closed.
	errGone = errors.New("the peer is gone")
)

var pingComment = []byte(": ping\n\n")

// sink writes one answer's body as the step says. One goroutine owns it.
type sink struct {
	ctx   context.Context
	w     http.ResponseWriter
	flush http.Flusher

	split int           // bytes per write; 0: all at once
	hold  bool          // collect everything for one write
	pings time.Duration // interval of comments while a stream waits
	begun bool          // a stream's headers are sent

	held []byte
}

// begin flushes the headers.
func (k *sink) begin(stream bool) {
	if k.flush != nil {
		k.flush.Flush()
	}
	k.begun = stream
}

// send writes one piece of the body, or holds it back for release.
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

// wait waits for d, or returns errGone if the peer leaves first.
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
