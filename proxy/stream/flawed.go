package stream

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// keepForLater completes a flawed answer for possible delivery later, with the held piece p and the
// little that follows.
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

// flawed keeps a complete but flawed answer for possible delivery later.
func (a *Answer) flawed(b *Broken, p Piece) {
	if a.h != nil && a.h.state == asked {
		a.keepForLater(b, p)
	}
}

// noteContent records content that comes before the gate opens, even if it is held back.
func (a *Answer) noteContent(d *Delta) {
	a.says = a.says || d.Text != ""
	if !a.writes {
		a.o.Life.Show(recovery.SignWrites)
	}
	a.writes = true
}

// showsLife records an event before the gate opens as a sign of life.
func (a *Answer) showsLife(d *Delta) {
	sign := recovery.SignAlive
	if d.item.event != eventOther { // a response was created, or an item begins
		sign = recovery.SignThinks
	}
	a.o.Life.Show(sign)
}

// meaningful records the time of the first event with content.
func (a *Answer) meaningful() {
	if a.first.IsZero() {
		a.first = time.Now()
	}
}

// calling reports whether a call has begun.
func (a *Answer) calling() bool { return a.h != nil && len(a.h.calls.list) > 0 }

// composing reports whether the last call has no arguments yet, or has all of them: some servers then
// pause until the next part is complete.
func (a *Answer) composing() bool {
	if !a.calling() {
		return false
	}
	last := a.h.calls.list[len(a.h.calls.list)-1]
	return !last.state.began || last.state.complete()
}

// noteEvent records the time of an event with data for patience.
func (a *Answer) noteEvent() {
	a.mu.Lock()
	a.last, a.slow = a.r.now(), a.composing() || !a.says && !a.calling()
	a.mu.Unlock()
}
