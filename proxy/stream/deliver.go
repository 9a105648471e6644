package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"
)

const (
	// endGrace is how long a finished stream may take to send its usage and end mark; after that the
	// gateway ends it.
	endGrace = 2 * time.Second
	// drainFor and drainBytes limit the reading after the end mark, which allows the connection to be
	// reused.
	drainFor   = 100 * time.Millisecond
	drainBytes = 64 << 10
)

// Deliver passes the answer on, event by event, and returns nil if it was complete.
func (a *Answer) Deliver(context.Context) *Broken {
	defer a.resp.Body.Close()
	defer a.delivered()
	s := a.o.Sink
	a.ReportRepairs()
	s.Begin(a.resp.StatusCode, a.resp.Header)
	if err := a.write(a.held.take()); err != nil {
		return a.clientGone(err)
	}
	if a.deferred {
		if a.noReason {
			a.o.Ending.reasons.Store(false) // the target does not always give one
			a.o.Ending.bare.Store(a.bare)
		}
		return nil
	}
	if a.unread {
		return a.passUnread()
	}
	if !a.done {
		a.mu.Lock()
		a.since, a.ended, a.slow = a.r.now(), a.finished(), a.composing()
		a.last = a.since
		a.mu.Unlock()
		if broken := a.pass(); broken != nil {
			return broken
		}
	}
	a.drain()
	return nil
}

// pass is the event loop. Its stack is kept shallow, because thousands of goroutines may wait in it.
func (a *Answer) pass() *Broken {
	var out queue
	grace := a.grace(nil)
	defer func() { stop(grace) }()
	for !a.done {
		if err := a.next(); err != nil {
			return a.end(err)
		}
		if broken, over := a.passEvent(&a.ev, &out); over {
			return broken
		}
		if a.ev.HasData { // pings do not prolong it
			grace = a.grace(grace)
		}
	}
	return nil
}

// passEvent writes an event to the client, or adds it to the batch if more events are buffered. over
// means that it was the last one, even without an end mark.
func (a *Answer) passEvent(ev *Event, out *queue) (broken *Broken, over bool) {
	piece, _, broken := a.accept(ev)
	if broken != nil {
		return a.breaks(broken, out, piece), true
	}
	a.ReportRepairs()
	if !a.done && a.r.Ready() {
		// More is buffered: one write and one flush for all of it.
		out.Bytes = slices.Grow(out.Bytes, len(piece.Bytes)+a.r.Buffered())
		out.add(piece)
		return nil, false
	}
	if a.done && !a.complete(io.EOF) {
		// An end mark without a finish reason is not a complete end.
		_ = a.flush(out, Piece{})
		return &Broken{Err: ErrEnded}, true
	}
	if err := a.flush(out, piece); err != nil && !a.done { // else it has the last bytes, or does not want them
		return a.clientGone(err), true
	}
	return nil, false
}

// flush writes the batch and p.
func (a *Answer) flush(batch *queue, p Piece) error {
	if len(batch.Bytes) > 0 {
		batch.add(p)
		p = batch.lend()
	}
	if len(p.Bytes) == 0 {
		return nil
	}
	return a.write(p)
}

// breaks ends the loop. If a complete answer was judged flawed, the batch is written first, because
// the judgement counts its text as delivered.
func (a *Answer) breaks(b *Broken, batch *queue, held Piece) *Broken {
	if a.h == nil || a.h.state != asked {
		return b
	}
	if err := a.flush(batch, Piece{}); err != nil {
		return a.clientGone(err)
	}
	a.flawed(b, held)
	return b
}

// grace starts or restarts the time limit of a finished stream.
func (a *Answer) grace(t *time.Timer) *time.Timer {
	wait := endGrace
	if a.mayGoOn || a.first.IsZero() {
		wait = max(wait, a.o.Config.Idle)
	}
	if t != nil {
		t.Reset(wait)
	} else if a.finished() {
		t = time.AfterFunc(wait, func() { a.o.Cancel(ErrEnded) })
	}
	return t
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// next reads an event. It does not count the time between two calls, when the client was slow, as a
// pause of the upstream. An event with data stops an attempt that tries to take over; if that has
// already taken over, the error is ErrTaken.
func (a *Answer) next() error {
	if a.fed && a.r.ahead > 0 {
		return a.read() // buffered events have data, too
	}
	a.mu.Lock()
	began := a.r.now()
	a.last += began - a.since
	a.reading, a.since, a.ended, a.slow = true, began, a.finished() || a.pendingUsage != nil, a.composing()
	a.mu.Unlock()
	err := a.read()
	a.fed = a.ev.HasData
	a.mu.Lock()
	a.reading, a.since = false, max(began, a.r.heard())
	if !a.fed {
		a.mu.Unlock()
		return err
	}
	if a.taken {
		a.mu.Unlock()
		return ErrTaken
	}
	a.longest = max(a.longest, a.since-a.last)
	a.last, a.tried, a.refused = a.since, false, false
	rescue, rescued := a.rescue, a.rescued
	a.rescue, a.rescued = nil, nil
	a.mu.Unlock()
	if rescue != nil {
		rescue() // the stream goes on by itself
		<-rescued
	}
	return err
}

// end returns how an answer broke whose bytes ended with err, or nil if it is complete.
func (a *Answer) end(err error) *Broken {
	a.mu.Lock()
	rescued := a.rescued
	a.mu.Unlock()
	if rescued != nil {
		<-rescued // the other attempt may still take over
	}
	a.mu.Lock()
	taken := a.taken
	a.mu.Unlock()
	if taken {
		return &Broken{Err: ErrTaken, Stalled: true}
	}
	last, broken := a.implied(err)
	if broken != nil {
		return a.breaks(broken, &queue{}, last)
	}
	switch {
	case a.complete(err):
		// Complete, even if the end mark is missing.
		piece, broken := a.judgeRest(last)
		if broken != nil {
			return a.breaks(broken, &queue{}, piece)
		}
		a.ReportRepairs()
		piece.add(Piece{Bytes: End(a.o.Format, nil, nil)})
		if werr := a.write(piece); werr != nil {
			return a.clientGone(werr)
		}
		a.done = true
		return nil
	case a.tooLong(err):
		return a.passUnread()
	case errors.Is(err, io.EOF):
		return &Broken{Err: ErrEnded}
	default:
		return &Broken{Err: err, Stalled: errors.Is(err, ErrStalled)}
	}
}

// tooLong reports whether the next event, such as a large image, is too long to be read, and the client
// can get it as it comes.
func (a *Answer) tooLong(err error) bool {
	return errors.Is(err, ErrEventTooLong) && a.o.Resume == nil && !a.continues
}

// passUnread passes on what is held and the rest of the answer unchanged, as a plain proxy does.
func (a *Answer) passUnread() *Broken {
	var held Piece
	if a.h != nil {
		held = a.h.release()
	}
	if held.Bytes = append(held.Bytes, a.late...); a.pendingUsage != nil {
		held.Bytes = append(held.Bytes, a.pendingUsage.Raw...)
	}
	all := io.MultiReader(bytes.NewReader(held.Bytes), a.o.withItems(io.MultiReader(bytes.NewReader(a.r.rest()), a.resp.Body), true, &a.known))
	m := &Metered{ReadCloser: io.NopCloser(all)}
	broken := Copy(a.o.Sink, m)
	end, _ := m.Usage()
	a.usage = laterUsage(a.usage, end)
	return broken
}

func (a *Answer) clientGone(err error) *Broken {
	a.o.Cancel(err)
	return &Broken{Err: err, Client: true}
}

// drain reads the few bytes after the end mark.
func (a *Answer) drain() {
	if a.r.Ended() {
		return
	}
	t := time.AfterFunc(drainFor, func() { a.o.Cancel(nil) })
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, a.resp.Body, drainBytes)
}
