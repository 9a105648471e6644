package stream

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Deliverable is an answer as whoever delivers it sees it.
type Deliverable interface {
	// Tell reports what was mended so far, once; Deliver does so too. It comes
	// first where the response's headers depend on it.
	Tell()
	Deliver(context.Context) *Broken
	Discard()
	Usage() (recovery.Usage, time.Duration)
	// Finish is why the model ended the last choice, as far as it was read.
	Finish() recovery.Finish
	// Made is the id of the answer, where the server may have kept it under that.
	Made() string
}

var (
	_ Deliverable = (*Answer)(nil)
	_ Deliverable = (*Whole)(nil)
	_ Deliverable = (*Unread)(nil)
	_ Deliverable = (*Composed)(nil)
)

// Finish implements Deliverable.
func (a *Answer) Finish() recovery.Finish { return a.finish }

// Finish implements Deliverable.
func (w *Whole) Finish() recovery.Finish { return w.finish }

// Finish implements Deliverable: nobody has read it.
func (u *Unread) Finish() recovery.Finish { return recovery.FinishNone }

// Finish implements Deliverable: no model has ended it.
func (n *Composed) Finish() recovery.Finish { return recovery.FinishNone }

// Made implements Deliverable.
func (a *Answer) Made() string { return textOf([]byte(a.known.ID.ID)) }

// Made implements Deliverable.
func (w *Whole) Made() string { return textOf([]byte(w.id)) }

// Made implements Deliverable: nobody has read it.
func (u *Unread) Made() string { return "" }

// Made implements Deliverable: no server has made it.
func (n *Composed) Made() string { return "" }

// asIs makes the answer one that is delivered later, or never: what was held,
// and the little that follows. p was taken from the queue.
func (a *Answer) asIs(b *Broken, p Piece) {
	a.hold(p)
	grace := time.AfterFunc(endGrace, func() { a.o.Cancel(ErrEnded) })
	defer grace.Stop()
	for !a.done && int64(len(a.held.Bytes)) < a.o.Config.MaxAnswer {
		if a.read() != nil {
			break
		}
		p, _, broken := a.admit(&a.ev)
		if broken != nil {
			break
		}
		a.hold(p)
	}
	if !a.done {
		a.hold(Piece{Bytes: a.o.Format.Ending(nil, a.o.Sink)})
	}
	a.done, a.later = true, true
	_ = a.resp.Body.Close()
	b.Flawed = a
}

// conclude judges what is held at the end of the bytes, before anything was delivered.
func (a *Answer) conclude() *Broken {
	p, broken := a.settled(Piece{})
	if broken != nil {
		a.flawed(broken, p)
		return broken
	}
	a.hold(p)
	return nil
}

// flawed keeps an answer that is complete but cannot be used.
func (a *Answer) flawed(b *Broken, p Piece) {
	if a.h != nil && a.h.asked {
		a.asIs(b, p)
	}
}

// Tell reports what was mended so far, once.
func (a *Answer) Tell() {
	if a.h == nil || len(a.h.repairs) == 0 || a.o.Repaired == nil {
		return
	}
	list := a.h.repairs
	a.h.repairs = nil
	a.o.Repaired(list)
}

// begins notes what is written while the gate is closed, be it held back.
func (a *Answer) begins(d *Delta) {
	a.says = a.says || d.Text != ""
	if !a.writes && a.o.Began != nil {
		a.o.Began.Store(true)
	}
	a.writes = true
}

// begun notes the first event that can be shown, or is held until it can be.
func (a *Answer) begun() {
	if a.first.IsZero() {
		a.first = time.Now()
	}
}

// calling reports whether a call has begun.
func (a *Answer) calling() bool { return a.h != nil && len(a.h.calls.list) > 0 }

// patience watches an answer of which nothing can be shown yet for pauses. The
// returned function ends the watch. There is nothing to rescue: the attempt
// ends, and another one begins unseen. Servers that send a call's name and then
// nothing until its arguments are complete have all of IdlePinged for them, as
// has what only reasoned so far.
func (a *Answer) patience() (stop func()) {
	c := a.o.Config
	var timer *time.Timer
	stopped := false
	check := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.r.now()
		switch {
		case stopped:
		case now-a.last >= c.IdlePinged, !a.slow && now-max(a.last, a.r.heard()) >= c.Idle:
			a.o.Cancel(ErrStalled)
		default:
			timer.Reset(max(c.Idle/8, 10*time.Millisecond))
		}
	}
	a.noted()
	a.mu.Lock()
	defer a.mu.Unlock()
	timer = time.AfterFunc(c.Idle, check)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// noted is an event with data while patience watches.
func (a *Answer) noted() {
	a.mu.Lock()
	a.last, a.slow = a.r.now(), a.calling() || !a.says
	a.mu.Unlock()
}
