package stream

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// keepForLater keeps a complete but flawed answer for possible delivery later: p, which was
// held, and the little that follows.
func (a *Answer) keepForLater(b *Broken, p Piece) {
	a.hold(p)
	grace := time.AfterFunc(endGrace, func() { a.o.Cancel(ErrEnded) })
	defer grace.Stop()
	for !a.done && int64(len(a.held.Bytes)) < a.o.Config.MaxAnswer {
		if a.read() != nil {
			break
		}
		p, _, broken := a.admit(&a.ev, a.o.Format.Decode(&a.ev, &a.known))
		if broken != nil {
			break
		}
		a.hold(p)
	}
	if !a.done {
		a.hold(Piece{Bytes: End(a.o.Format, nil, nil)})
	}
	a.done, a.deferred = true, true
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
		a.keepForLater(b, p)
	}
}

// writing notes content that comes while the gate is closed, even if it is held back.
func (a *Answer) writing(d *Delta) {
	a.says = a.says || d.Text != ""
	if !a.writes && a.o.Life != nil {
		a.o.Life.Show(recovery.SignWrites)
	}
	a.writes = true
}

// showsLife notes the sign of life that an event is while the gate is closed.
func (a *Answer) showsLife(d *Delta) {
	switch {
	case a.o.Life == nil:
	case d.item.event != eventOther: // a response was created, or an item of it begins
		a.o.Life.Show(recovery.SignThinks)
	default:
		a.o.Life.Show(recovery.SignAlive)
	}
}

// meaningful notes the time of the first event with content.
func (a *Answer) meaningful() {
	if a.first.IsZero() {
		a.first = time.Now()
	}
}

// calling reports whether a call has begun.
func (a *Answer) calling() bool { return a.h != nil && len(a.h.calls.list) > 0 }

// composing reports whether the last call that has begun has no arguments so far, or has
// all of them: some servers then say nothing until the rest is there.
func (a *Answer) composing() bool {
	if !a.calling() {
		return false
	}
	last := a.h.calls.list[len(a.h.calls.list)-1]
	return !last.state.began || last.state.complete()
}

// patience watches an answer of which nothing was shown yet for pauses. The returned function
// ends the watch. Such an answer needs no continuation: the attempt ends, and another one
// begins unseen. Some servers send a call's name and then nothing until its arguments are
// complete; they have IdlePinged, as have answers that only reasoned so far. Arguments that
// stop in their middle have Idle, as text.
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

// noted notes an event with data for patience.
func (a *Answer) noted() {
	a.mu.Lock()
	a.last, a.slow = a.r.now(), a.composing() || !a.says && !a.calling()
	a.mu.Unlock()
}
