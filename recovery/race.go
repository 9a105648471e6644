package recovery

import (
	"context"
	"math"
	"sync"
	"time"
)

// alarm has a run's first attempt raced once a limit passes. Most attempts
// answer long before, and their alarm is used again.
type alarm struct {
	timer  *time.Timer
	run    *run
	ctx    context.Context
	first  *racer
	silent bool // the limit is that of the first token, not the deadline
}

// watch sets an alarm for an attempt that is about to be sent.
func (r *run) watch(ctx context.Context, first *racer) *alarm {
	wake := r.x.deadline.Sub(first.started)
	first.limit, first.most = r.silence(first)
	silent := first.limit > 0 && first.limit <= wake
	if silent {
		wake = first.limit
	}
	m, _ := r.alarms.Get().(*alarm)
	if m == nil {
		m = &alarm{}
	}
	m.run, m.ctx, m.first, m.silent = r, ctx, first, silent
	if m.timer == nil {
		m.timer = time.AfterFunc(wake, m.ring)
	} else {
		m.timer.Reset(wake)
	}
	return m
}

// unwatch takes an alarm back; false where it has gone off.
func (r *run) unwatch(m *alarm) bool {
	if !m.timer.Stop() {
		return false
	}
	*m = alarm{timer: m.timer}
	r.alarms.Put(m)
	return true
}

// ring races the attempt that is watched.
func (m *alarm) ring() {
	c := &m.first.race
	c.begin()
	var got *arrival
	m.run.guard("race", func() {
		answer, f := m.run.race(m.ctx, m.first, m.silent, c.arrivals)
		got = &arrival{answer: answer, failure: f}
	})
	c.result <- got
}

// race is what the goroutines of one attempt exchange, if its limit passes.
type race struct {
	once     sync.Once
	arrivals chan arrival
	result   chan *arrival // nil when the race broke: the first attempt is all there is
}

// maxRacers bounds the attempts beside a first one: each is extra input.
const maxRacers = 1 + maxExtraInput

// begin makes the channels; each of the goroutines calls it first. No sender
// ever blocks.
func (c *race) begin() {
	c.once.Do(func() { c.arrivals, c.result = make(chan arrival, maxRacers), make(chan *arrival, 1) })
}

// race goes on with an attempt whose first limit has passed: with its
// first-token limit if silent, else with the deadline.
func (r *run) race(ctx context.Context, first *racer, silent bool, arrivals chan arrival) (Answer, *Failure) {
	racers := []*racer{first}
	live := 1
	limit := time.NewTimer(0) // that the newest attempt may stay silent
	if !silent {
		limit.Stop()
	}
	defer limit.Stop()
	deadline := time.NewTimer(time.Until(r.x.deadline))
	defer deadline.Stop()
	var failed *Failure
	for live > 0 {
		select {
		case got := <-arrivals:
			live--
			if got.failure == nil {
				r.live = got.racer
				r.supersede(racers, got.racer, arrivals, live)
				return got.answer, nil
			}
			failed = got.failure
			r.failed(ctx, got.racer, got.answer, failed)
			if s := failed.Scope(); silent && (s == ScopeTarget || s == ScopeCredential) {
				limit.Reset(r.Config.BackoffMin) // another may take its place
			}
		case <-limit.C:
			var second *racer
			var f *Failure
			var again time.Duration
			r.guard("second attempt", func() { second, f, again = r.beside(ctx, racers) })
			if second != nil {
				racers = append(racers, second)
				live++
				go r.join(second, f, arrivals)
			}
			if again > 0 {
				limit.Reset(again)
			}
		case <-deadline.C:
			for _, rc := range racers {
				if !rc.began.Load() { // what is being written is not cut: it is watched for pauses
					rc.cancel(errDeadline)
				}
			}
		case <-ctx.Done():
			for ; live > 0; live-- {
				if got := <-arrivals; got.answer != nil {
					got.answer.Discard()
				}
			}
			failed = r.failure(first, Evidence{Phase: PhaseHeaders, Err: context.Cause(ctx)})
		}
	}
	for _, rc := range racers {
		if !r.settled(rc) { // the client left
			r.end(rc, Outcome{}, "")
		}
	}
	return nil, failed
}

// beside looks after attempts none of which has answered yet. Where the newest
// has passed its limit it makes another one ready to be sent or, where none is
// allowed, gives the newest up for another target. again is when to look next,
// 0 for never: budgets and targets come back. A failure means that there is
// nothing to send.
func (r *run) beside(ctx context.Context, racers []*racer) (second *racer, f *Failure, again time.Duration) {
	if ctx.Err() != nil {
		return nil, nil, 0 // nobody is left to get an answer
	}
	var silent *racer
	for _, rc := range racers {
		if rc.began.Load() {
			return nil, nil, 0 // one of them answers
		}
		if !r.settled(rc) {
			silent = rc
		}
	}
	if silent.limit, silent.most = r.silence(silent); silent.limit <= 0 {
		return nil, nil, 0
	}
	waited := time.Since(silent.started)
	if waited < silent.limit {
		return nil, nil, silent.limit - waited
	}
	switch {
	case silent.action.Resume != nil: // nothing goes out beside it: the next continuation comes after it
		silent.cancel(context.DeadlineExceeded)
		return nil, nil, 0
	case r.exhausted(false):
		return nil, nil, 0
	}
	other, ok := r.elsewhere(silent.choice)
	if second := r.alternative(silent, other, ok, len(racers) == 1); second != nil {
		f = r.start(ctx, second, silent.action)
		if second.limit, second.most = r.silence(second); second.limit <= 0 {
			second.limit, second.most = silent.limit, silent.most
		}
		return second, f, second.limit
	}
	if ok && (waited >= silent.most || r.Health.Check(silent.ticket.Target).Open) {
		r.x.Candidates[silent.choice].Silent = true
		silent.cancel(context.DeadlineExceeded)
	}
	return nil, nil, silent.limit
}

// join sends a second attempt, unless it has failed already.
func (r *run) join(second *racer, f *Failure, arrivals chan<- arrival) {
	got := arrival{second, nil, f}
	if f == nil {
		got.answer, got.failure = r.send(second)
	}
	arrivals <- got
}

// alternative takes a place for a parallel attempt: at another target or, where
// there is no other, once more at the same one. nil when nothing is to be had
// or the budget is spent.
func (r *run) alternative(silent *racer, other int, ok, once bool) *racer {
	x := r.x
	if !ok && !once || x.extra >= r.Config.ExtraInput || !r.Config.Parallel.Enabled {
		return nil
	}
	choice := silent.choice
	if ok {
		choice = other
	}
	if !x.state.MayRace() || !r.Pace.Allow(x) {
		return nil
	}
	now := time.Now()
	ticket, st := r.Health.Begin(x.Candidates[choice].Target, now, false, false)
	if !st.Ready {
		return nil
	}
	x.extra++
	x.Candidates[silent.choice].Silent = ok
	ev := r.event(EventRecoveryAttempt, nil)
	ev.Target, ev.Class, ev.Strategy = silent.ticket.Target, Timeout, StrategyParallel
	r.Observer.Observe(ev)
	return &racer{choice: choice, ticket: ticket, started: now, strategy: StrategyParallel, parallel: true}
}

// supersede ends the attempts that lost against winner.
func (r *run) supersede(racers []*racer, winner *racer, arrivals <-chan arrival, live int) {
	for i, rc := range racers {
		if rc == winner || r.settled(rc) {
			continue
		}
		rc.cancel(errSuperseded)
		o := Outcome{}
		if i < len(racers)-1 {
			// Silent beyond its limit, which is why another was started.
			o.Failure = r.failure(rc, Evidence{Phase: PhaseHeaders, Err: context.DeadlineExceeded})
		}
		r.end(rc, o, Timeout)
	}
	if live > 0 {
		go func() {
			for ; live > 0; live-- {
				if got := <-arrivals; got.answer != nil {
					got.answer.Discard()
				}
			}
		}()
	}
}

// watchPauses looks after an answer while it is delivered. In a pause the timer's goroutine
// takes the exchange over, as in a race, and Deliver waits until it gives it back.
func (r *run) watchPauses(ctx context.Context, rc *racer, a Answer) (stop func() bool) {
	_, first := a.Paused(ctx)
	if first <= 0 {
		return func() bool { return true }
	}
	var t *time.Timer
	t = time.AfterFunc(math.MaxInt64, func() {
		p, again := a.Paused(ctx)
		if p != nil {
			r.guard("rescue", func() {
				defer p.Over()
				r.rescue(ctx, rc, p)
			})
		}
		if again > 0 {
			t.Reset(again)
		}
	})
	t.Reset(first) // only now t is known to the function
	return t.Stop
}

// rescue asks for a continuation while the answer of rc pauses: once more, where that fails.
func (r *run) rescue(ctx context.Context, rc *racer, p *Pause) {
	f := r.failure(rc, Evidence{Phase: PhaseStream, Err: context.DeadlineExceeded})
	f.Released, f.Sent, f.Stalled = ReleasedText, p.Sent, true
	c := &r.x.Candidates[rc.choice]
	before := c.Silent
	c.Silent = true // while it pauses, others come first
	for try := 0; try < 2 && f != nil && p.Context.Err() == nil; try++ {
		next, ok := r.plan(ctx, f)
		if !ok {
			break
		}
		f = r.replace(ctx, rc, p, next)
	}
	if rc.rescued == nil {
		r.live, c.Silent = rc, before
	}
}

// replace makes one attempt that may take over from rc while that pauses. It
// returns why it did not, nil where it did, or came too late.
func (r *run) replace(ctx context.Context, rc *racer, p *Pause, next Action) *Failure {
	// The attempt ends with the pause, unless it takes over: then it has to
	// outlive it.
	ctx, cancel := context.WithCancelCause(ctx)
	untie := context.AfterFunc(p.Context, func() { cancel(errSuperseded) })
	if !r.pause(ctx, next.Wait) {
		cancel(nil)
		return nil
	}
	answer, f := r.attempt(ctx, next)
	switch {
	case answer == nil:
		r.supplant() // a flawed end would no longer fit what the paused answer says meanwhile
		cancel(nil)
		return f
	case untie() && p.Take():
		rc.rescued = answer
	default:
		r.lose(answer)
		cancel(errSuperseded)
	}
	return nil
}
