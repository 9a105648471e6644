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
	timer *time.Timer
	run   *run
	ctx   context.Context
	first *racer
}

// watch sets an alarm for an attempt that is about to be sent.
func (r *run) watch(ctx context.Context, first *racer) *alarm {
	wake := r.x.deadline.Sub(first.started)
	if limit := r.limit(first); limit > 0 {
		wake = min(wake, limit)
	}
	m, _ := r.alarms.Get().(*alarm)
	if m == nil {
		m = &alarm{}
	}
	m.run, m.ctx, m.first = r, ctx, first
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
		answer, f := m.run.race(m.ctx, m.first, c.arrivals)
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

// maxRacers bounds the attempts beside a first one: each is extra input, but for the one that takes the
// place of another.
const maxRacers = 2 + maxExtraInput

// begin makes the channels; each of the goroutines calls it first. No sender
// ever blocks.
func (c *race) begin() {
	c.once.Do(func() { c.arrivals, c.result = make(chan arrival, maxRacers), make(chan *arrival, 1) })
}

// apart makes an attempt in a goroutine of its own, so that it can be read on where another one wins.
func (r *run) apart(ctx context.Context, first *racer) (answer Answer, f *Failure) {
	c := &first.race
	c.begin()
	go r.join(first, nil, c.arrivals)
	if r.guard("race", func() { answer, f = r.race(ctx, first, c.arrivals) }) {
		return answer, f
	}
	for !first.arrived { // the first attempt is all there is
		got := <-c.arrivals
		if got.racer != first {
			if got.answer != nil {
				got.answer.Discard()
			}
			continue
		}
		if got.failure == nil {
			r.live = first
			return got.answer, nil
		}
		r.failed(ctx, first, got.answer, got.failure)
		return nil, got.failure
	}
	return nil, &Failure{Target: first.ticket.Target, Err: errBroke}
}

// race goes on with an attempt that is under way until one has answered or all have failed. It looks at
// them when the newest passes its limit, and at the deadline.
func (r *run) race(ctx context.Context, first *racer, arrivals chan arrival) (Answer, *Failure) {
	racers := []*racer{first}
	live := 1
	look := time.NewTimer(math.MaxInt64)
	if limit := r.limit(first); limit > 0 {
		look.Reset(limit - time.Since(first.started))
	}
	defer look.Stop()
	deadline := time.NewTimer(time.Until(r.x.deadline))
	defer deadline.Stop()
	var failed *Failure
	for live > 0 {
		select {
		case got := <-arrivals:
			live--
			got.arrived = true
			switch {
			case got.failure == nil:
				r.live = got.racer
				r.supersede(racers, got.racer, arrivals, live)
				return got.answer, nil
			case got.replaced:
				if got.answer != nil {
					got.answer.Discard()
				}
				r.end(got.racer, Outcome{}, Timeout)
				continue
			}
			failed = got.failure
			r.failed(ctx, got.racer, got.answer, failed)
			if s := failed.Scope(); s == ScopeTarget || s == ScopeCredential {
				look.Reset(r.Config.BackoffMin) // another may take its place
			}
		case <-look.C:
			var second *racer
			var f *Failure
			var again time.Duration
			r.guard("second attempt", func() { second, f, again = r.look(ctx, racers) })
			if second != nil {
				racers = append(racers, second)
				live++
				go r.join(second, f, arrivals)
			}
			if again > 0 {
				look.Reset(again)
			}
		case <-deadline.C:
			for _, rc := range racers {
				if rc.life.Sign() < SignWrites { // what is being written is not cut: it is watched for pauses
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
		if !r.booked(rc) { // the client left
			r.end(rc, Outcome{}, "")
		}
	}
	return nil, failed
}

// look decides about attempts none of which has answered yet. Where the newest has passed its limit it
// makes another one ready to be sent: beside it or, with evidence that it is lost, in its place. again is
// when to look next, 0 for never: signs of life, budgets, targets and what others find out come and go.
// A failure means that there is nothing to send.
func (r *run) look(ctx context.Context, racers []*racer) (second *racer, f *Failure, again time.Duration) {
	if ctx.Err() != nil {
		return nil, nil, 0 // nobody is left to get an answer
	}
	var newest *racer
	for _, rc := range racers {
		switch {
		case r.booked(rc) || rc.replaced:
		case rc.life.Sign() == SignWrites:
			return nil, nil, 0 // one of them answers
		default:
			newest = rc
		}
	}
	limit, waited := r.limit(newest), time.Since(newest.started)
	switch {
	case limit <= 0:
		return nil, nil, 0
	case waited < limit:
		return nil, nil, limit - waited
	case newest.action.Resume != nil: // nothing goes out beside it: the next continuation comes after it
		newest.cancel(context.DeadlineExceeded)
		return nil, nil, 0
	case r.exhausted(false):
		return nil, nil, 0
	}
	if !newest.silent && newest.life.Sign() == SignNone && waited >= newest.limits.Silent {
		newest.silent = true
		r.Pace.Silent(r.x, newest.ticket.Target)
	}
	if second = r.alternative(newest, len(racers) == 1); second == nil {
		return nil, nil, lookEvery
	}
	if !second.parallel {
		newest.replaced = true
		newest.cancel(errSuperseded)
	}
	f = r.start(ctx, second, newest.action)
	if again = r.limit(second); again <= 0 {
		second.limits = newest.limits
		again = newest.limits.Silent
	}
	return second, f, again
}

// join sends an attempt, unless it has failed already.
func (r *run) join(rc *racer, f *Failure, arrivals chan<- arrival) {
	got := arrival{rc, nil, f}
	if f == nil {
		got.answer, got.failure = r.send(rc)
	}
	arrivals <- got
}

// alternative takes a place for an attempt at another target or, where there is no other, once more at the
// same one. It is parallel while the budget lasts. Without a budget, and once for a request, it takes the
// place of one that is lost. nil is for nothing.
func (r *run) alternative(old *racer, once bool) *racer {
	x := r.x
	choice, other := r.elsewhere(old.choice)
	if !other {
		choice = old.choice
	}
	to := x.Candidates[choice].Target
	if !other && !once || !x.state.MayRace() || !r.Health.Check(to).Ready {
		return nil
	}
	rc := &racer{choice: choice, strategy: StrategyParallel, parallel: true}
	free := old.probe() && other // what the breaker does to find out is no request's budget
	switch {
	case r.Config.Parallel.Enabled && x.extra < r.Config.ExtraInput && (free || r.Pace.Allow(x)):
	case !r.replaced && r.lost(old, other):
		rc.parallel, rc.strategy = false, "resend"
		if other {
			rc.strategy = "move"
		}
	default:
		return nil
	}
	rc.started = time.Now()
	var st Status
	if rc.ticket, st = r.Health.Begin(to, rc.started, false, false); !st.Ready {
		if rc.parallel && !free {
			r.Pace.Return()
		}
		return nil
	}
	if rc.parallel {
		x.extra++
	} else {
		r.replaced = true
	}
	x.Candidates[old.choice].Silent = other
	ev := r.event(EventRecoveryAttempt, nil)
	ev.Target, ev.Class, ev.Strategy = old.ticket.Target, Timeout, rc.strategy
	r.Observer.Observe(ev)
	return rc
}

// lost reports whether there is evidence that a silent attempt will not be answered: its target's breaker is open, or
// opened during the attempt, and another target may be asked; or a later request to the target was answered long ago.
func (r *run) lost(rc *racer, other bool) bool {
	if other && !rc.probe() {
		if st := r.Health.Check(rc.ticket.Target); st.Open || st.Opened.After(rc.started) {
			return true
		}
	}
	after := rc.limits.Lost
	if s := rc.life.Sign(); s != SignNone {
		after = max(after, 2*rc.limits.After(s))
	}
	return time.Since(rc.started) >= after && r.Pace.Overtaken(r.x, rc.attempt.Target, rc.started)
}

// supersede ends the attempts that lost against winner. One that was silent beyond its limit is read on
// where nothing else of its target is. Losing alone is no failure.
func (r *run) supersede(racers []*racer, winner *racer, arrivals <-chan arrival, live int) {
	var kept *racer
	for i, rc := range racers {
		if rc == winner || r.booked(rc) {
			continue
		}
		rc.life.Lose()
		if winner.parallel && r.proven(rc, winner) {
			r.guard("pace", r.Pace.Return)
		}
		if last := i == len(racers)-1; kept == nil && !last && !rc.replaced && rc.untie != nil && r.Losers.keep(rc.place(), rc.cancel) {
			kept = rc
			r.losers = append(r.losers, rc)
			r.close(rc, Timeout, time.Now())
			continue
		}
		rc.cancel(errSuperseded)
		r.end(rc, Outcome{}, Timeout)
	}
	if live > 0 {
		go r.readOn(kept, arrivals, live)
	}
}

// proven reports whether a parallel start has proven that the silent attempt was lost: it might have
// taken its place, which needs no budget.
func (r *run) proven(rc, winner *racer) bool {
	same := rc.ticket.Target.Upstream == winner.ticket.Target.Upstream && rc.ticket.Target.Model == winner.ticket.Target.Model
	return same && rc.life.Sign() == SignNone && winner.started.Sub(rc.started) >= rc.limits.Lost
}

// letGo lets losers that are read on outlive the request, unless its client left.
func (r *run) letGo(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, rc := range r.losers {
		rc.untie()
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

// rescue asks for a continuation while the answer of rc pauses: once more, where that fails. Whether
// its server has kept the answer does not count.
func (r *run) rescue(ctx context.Context, rc *racer, p *Pause) {
	f := r.failure(rc, Evidence{Phase: PhaseStream, Err: context.DeadlineExceeded})
	f.Released, f.Sent, f.Stalled, f.Job = ReleasedText, p.Sent, true, p.Job
	c := &r.x.Candidates[rc.choice]
	before := c.Silent
	c.Silent = true // while it pauses, others come first
	refused := false
	for try := 0; try < 2 && f != nil && p.Context.Err() == nil; try++ {
		next, ok := r.plan(ctx, f)
		if !ok {
			break
		}
		f = r.replace(ctx, rc, p, next)
		if refused = f != nil; next.Resume.fetches() { // a server that still works on it has refused nothing
			try--
			refused = refused && f.Class() != Timeout
		}
	}
	if rc.rescued == nil {
		r.live, c.Silent = rc, before
	}
	if _, other := r.elsewhere(rc.choice); refused && !other && p.Context.Err() == nil {
		switch f.Class() {
		case RateLimit, QuotaExhausted, Overloaded: // which says nothing about an answer that has begun
		default:
			p.Refused()
		}
	}
}

// replace makes one attempt that may take over from rc while that pauses. It
// returns why it did not, nil where it did, or came too late.
func (r *run) replace(ctx context.Context, rc *racer, p *Pause, next Action) *Failure {
	// The attempt ends with the pause, unless it takes over: then it has to
	// outlive it.
	ctx, cancel := context.WithCancelCause(ctx)
	untie := context.AfterFunc(p.Context, func() { cancel(errSuperseded) })
	if !Wait(ctx, next.Wait) {
		cancel(nil)
		return nil
	}
	answer, f := r.attempt(ctx, next)
	switch {
	case answer == nil:
		r.dropKept() // a flawed end would no longer fit what the paused answer says meanwhile
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
