package recovery

import (
	"context"
	"sync"
	"time"
)

// Losers reads attempts that lost a race to their end, in the background, to learn whether their targets are slow or
// dead. It reads one per target at a time. The attempts outlive their requests and end with Close. The zero value is
// ready; it is safe for concurrent use.
type Losers struct {
	mu     sync.Mutex
	kept   map[Target]context.CancelCauseFunc // by upstream and model; probes apart from others
	closed bool
	group  sync.WaitGroup
}

const (
	// maxLosers limits the attempts that are read at a time, over all targets: each keeps its request in memory.
	maxLosers = 32
	// readLoser limits how long a loser is read after its race.
	readLoser = 3 * time.Minute
	// deadAfter is the number of silent attempts in a row from which their target counts as dead.
	deadAfter = 4
	// lookEvery is how often attempts that are silent for too long are checked.
	lookEvery = time.Second
)

// place returns the key of an attempt in Losers: its target without the key, marked if the attempt is a probe.
func (rc *racer) place() Target {
	t := rc.ticket.Target.Keyless()
	if rc.probe() {
		t.Key = "probe"
	}
	return t
}

// keep registers an attempt that is read to its end, under its key t from place. It returns false if the key is in use, or
// if maxLosers attempts are being read.
func (l *Losers) keep(t Target, cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.kept[t]; taken || l.closed || len(l.kept) >= maxLosers {
		return false
	}
	if l.kept == nil {
		l.kept = map[Target]context.CancelCauseFunc{}
	}
	l.kept[t] = cancel
	l.group.Add(1)
	return true
}

// release removes the attempt with key t.
func (l *Losers) release(t Target) {
	l.mu.Lock()
	delete(l.kept, t)
	l.mu.Unlock()
	l.group.Done()
}

// Close ends all attempts that are read and waits for that. From then on keep returns false.
func (l *Losers) Close() {
	l.mu.Lock()
	l.closed = true
	for _, cancel := range l.kept {
		cancel(errSuperseded)
	}
	l.mu.Unlock()
	l.group.Wait()
}

// Charger is a Sender that can charge an attempt's usage after the end of its exchange. It returns the price, if
// prices are configured.
type Charger interface {
	Charge(t Target, u Usage) (spent float64)
}

// How a loser ended: the cause of its event.
const (
	lateAnswered = "answered"
	lateFailed   = "failed"
	lateDead     = "dead"
	lateUnknown  = "given up"
)

// readOn waits for the remaining live attempts of a race and reads kept, which may be nil, to its end. It reads only the
// constant fields of the exchange.
func (r *run) readOn(kept *racer, arrivals <-chan arrival, live int) {
	look, over := time.NewTicker(lookEvery), time.NewTimer(readLoser)
	defer look.Stop()
	defer over.Stop()
	dead := false
	for live > 0 {
		select {
		case got := <-arrivals:
			live--
			switch {
			case got.racer == kept:
				r.recordLoser(got, dead, over.C)
				kept = nil
			case got.answer != nil:
				got.answer.Discard()
			}
		case <-look.C:
			if kept != nil && !dead && r.dead(kept) {
				dead = true
				kept.cancel(context.DeadlineExceeded)
			}
		case <-over.C:
			if kept != nil {
				dead = dead || r.dead(kept)
				kept.cancel(errSuperseded)
			}
		}
	}
}

// dead reports whether the target of a silent attempt counts as dead: the attempt has shown nothing for twice its limit,
// and at least deadAfter attempts in a row were silent without an answer from the target in between.
func (r *run) dead(rc *racer) bool {
	if rc.life.Sign() != SignNone || rc.limits.Silent <= 0 || time.Since(rc.started) < min(2*rc.limits.Silent, rc.limits.Silent+readLoser) {
		return false
	}
	n := 0
	Guard("pace", func() { n, _ = r.Pace.Silence(rc.ticket.Target) }, nil)
	return n >= deadAfter
}

// recordLoser records the outcome of a loser that was read to its end, and reports it as an event.
func (r *run) recordLoser(got arrival, dead bool, over <-chan time.Time) {
	rc := got.racer
	defer r.Losers.release(rc.place())
	o, cause := Outcome{}, lateUnknown
	var used Usage
	switch {
	case got.answer != nil:
		o.Success, cause = true, lateAnswered
		used = r.drain(rc, got.answer, over)
	case dead:
		cause = lateDead
		o.Failure = r.failure(rc, Evidence{Phase: PhaseHeaders, Err: context.DeadlineExceeded})
		o.Dead = true
	case rc.ctx.Err() == nil: // otherwise the attempt was cancelled and its outcome is unknown
		cause = lateFailed
		o.Failure = got.failure
		if got.failure.Signal.Status == 0 && got.failure.Signal.Phase <= PhaseHeaders && rc.life.Sign() == SignNone {
			n := 0
			Guard("pace", func() { n, _ = r.Pace.Silence(rc.ticket.Target) }, nil)
			o.Dead = n > 0 // the target answered nothing else since
		}
	}
	if o.Dead {
		_, o.Several = r.Pace.Silence(rc.ticket.Target)
	}
	if o.Dead || o.Failure != nil && o.Failure.Signal.Status != 0 {
		r.Pace.ResetSilence(rc.ticket.Target) // so that the next silent attempt counts as the first one
	}
	rc.cancel(nil)
	o.At = time.Now()
	rc.ticket.Place.Done(rc.ticket, o)
	ev := r.x.Event(EventLateAnswer)
	ev.Target, ev.Cause, ev.Cost, ev.Duration = rc.ticket.Target, cause, used, o.At.Sub(rc.started)
	if c, ok := r.sender.(Charger); ok {
		ev.Spent = c.Charge(rc.ticket.Target, used)
	}
	r.Observer.Observe(ev)
}

// drain reads an answer that no client gets to its end, to learn the pace and the usage.
func (r *run) drain(rc *racer, answer Answer, over <-chan time.Time) Usage {
	read := make(chan struct{})
	go func() {
		select {
		case <-over:
			rc.cancel(errSuperseded)
		case <-read:
		}
	}()
	Guard("late answer", answer.Drain, nil)
	close(read)
	used, first := answer.Usage()
	Guard("pace", func() {
		r.Pace.Answered(r.x, rc.attempt.Target, rc.started)
		r.Pace.Observe(r.x, rc.attempt.Target, first, used)
	}, nil)
	return used
}
