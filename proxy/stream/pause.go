package stream

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Paused implements recovery.Answer. It also ends an answer that has been silent for too long.
func (a *Answer) Paused(ctx context.Context) (p *recovery.Pause, again time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.taken || ctx.Err() != nil {
		return nil, 0
	}
	c, now := a.o.Config, a.r.now()
	if a.o.Idle > 0 {
		c.Idle = min(c.Idle, a.o.Idle)
	}
	quiet := now - a.last
	silent := min(now-a.r.heard(), now-a.since)
	switch {
	case !a.reading: // the client is slow, not the upstream
		return nil, c.Idle
	case silent >= c.IdlePinged || quiet >= 5*c.IdlePinged || a.refused && silent >= refusedIdle:
		a.o.Cancel(ErrStalled)
		return nil, 0
	case a.rescue == nil && !a.tried && !a.ended && !a.slow && (silent >= c.Idle || quiet >= c.IdlePinged):
		a.tried = true
		p = a.pause(ctx)
	}
	return p, max(min(c.Idle-silent, c.IdlePinged-quiet), c.Idle/8, 10*time.Millisecond)
}

// watchStalls watches an answer for pauses while nothing of it was delivered. The returned function ends
// the watch. Such an answer needs no continuation: the attempt is cancelled, and a new one starts
// without the client noticing. IdlePinged applies to answers that have only reasoned so far, and to
// calls whose arguments have not begun or are complete, because some servers pause there. Arguments
// that stop in the middle have Idle, like text.
func (a *Answer) watchStalls() (stop func()) {
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
	a.noteEvent()
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

// refusedIdle is how long an answer may be silent after its continuation was refused.
const refusedIdle = 30 * time.Second

// LongestPause returns the upstream's longest pause during delivery.
func (a *Answer) LongestPause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.longest
}

// pause returns a pause that the engine may act on, or nil if the answer cannot be continued. The lock
// is held.
func (a *Answer) pause(ctx context.Context) *recovery.Pause {
	sent := a.o.Sink.Sent()
	if a.o.Sink.Released() != recovery.ReleasedText || sent == "" {
		return nil
	}
	p := &recovery.Pause{Sent: sent}
	p.Context, a.rescue = context.WithCancel(ctx)
	over := make(chan struct{})
	a.rescued, p.Done = over, func() { close(over) }
	p.Refused = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.refused = a.rescued == over
	}
	p.Replace = func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.rescued != over || a.taken {
			return false // the stream went on
		}
		a.taken = true
		a.o.Cancel(ErrTaken)
		return true
	}
	return p
}

// delivered stops an attempt that tries to take over, so that afterwards only the caller of Deliver
// uses the exchange.
func (a *Answer) delivered() {
	a.mu.Lock()
	a.over = true
	rescue, rescued := a.rescue, a.rescued
	a.mu.Unlock()
	if rescue != nil {
		rescue()
	}
	if rescued != nil {
		<-rescued
	}
}
