package recovery

import (
	"context"
	"math"
	"sync"
	"time"
)

// alarm starts a race once a run's first attempt passes its limit. Most attempts answer long before, so alarms
// are reused.
type alarm struct {
	timer *time.Timer
	run   *run
	ctx   context.Context
	first *racer
}

// watch sets an alarm for an attempt that is about to start.
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

// unwatch cancels an alarm; it returns false if the alarm has gone off.
func (r *run) unwatch(m *alarm) bool {
	if !m.timer.Stop() {
		return false
	}
	*m = alarm{timer: m.timer}
	r.alarms.Put(m)
	return true
}

// ring starts the race of the watched attempt.
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

// race connects the goroutines of one attempt after its limit has passed.
type race struct {
	once     sync.Once
	arrivals chan arrival
	result   chan *arrival // receives nil if the race panicked: only the first attempt is left
}

// maxRacers limits the attempts beside a first one. Each is extra input, except one that replaces
// another.
const maxRacers = 2 + maxExtraInput

// begin makes the channels; each goroutine calls it first. Sends never block.
func (c *race) begin() {
	c.once.Do(func() { c.arrivals, c.result = make(chan arrival, maxRacers), make(chan *arrival, 1) })
}

// attemptAsync makes an attempt in its own goroutine, so that it can be read to its end if another one wins.
func (r *run) attemptAsync(ctx context.Context, first *racer) (answer Answer, f *Failure) {
	c := &first.race
	c.begin()
	go r.join(first, nil, c.arrivals)
	if r.guard("race", func() { answer, f = r.race(ctx, first, c.arrivals) }) {
		return answer, f
	}
	for !first.arrived { // only the first attempt is left
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

// race waits until one attempt has answered or all have failed. It considers a further attempt each time the newest one
// passes its limit, and cancels silent attempts at the deadline.
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
				look.Reset(r.Config.BackoffMin) // another may replace it
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
				switch {
				case rc.life.Sign() >= SignWrites: // an answer that is being written is not cut, but watched for pauses
				case r.waitsAlive(rc):
					deadline.Reset(lookEvery)
				default:
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
		if !r.recorded(rc) { // the client left
			r.end(rc, Outcome{}, "")
		}
	}
	return nil, failed
}

// aliveFor is how long an attempt counts as alive after a sign of life.
const aliveFor = 30 * time.Second

// waitsAlive reports whether an attempt at the client's own time limit shows that its target holds it in a queue. The client
// hears of that, and most clients' limit is one of silence. The configured deadline remains.
func (r *run) waitsAlive(rc *racer) bool {
	return rc.life.Silence() < min(aliveFor, r.patience()) && time.Since(r.x.Started) < r.Config.Deadline
}

// look checks attempts of which none has answered. If the newest has passed its limit, look prepares another one: beside
// it or, with evidence that it is lost, in its place. again is the time until the next check, which is needed since signs
// of life, budgets and targets' health change; 0 for never. A failure means that the request could not be built.
func (r *run) look(ctx context.Context, racers []*racer) (second *racer, f *Failure, again time.Duration) {
	if ctx.Err() != nil {
		return nil, nil, 0 // the client is gone
	}
	var newest *racer
	for _, rc := range racers {
		switch {
		case r.recorded(rc) || rc.replaced:
		case rc.life.Sign() == SignWrites:
			return nil, nil, 0 // one of them is answering
		default:
			newest = rc
		}
	}
	if newest == nil {
		return nil, nil, 0 // all are replaced or over
	}
	limit, waited := r.limit(newest), time.Since(newest.started)
	switch {
	case limit <= 0:
		return nil, nil, 0
	case waited < limit:
		return nil, nil, limit - waited
	case newest.action.Resume != nil: // nothing runs beside a continuation: the next one follows it
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

// join sends an attempt, unless it has already failed.
func (r *run) join(rc *racer, f *Failure, arrivals chan<- arrival) {
	got := arrival{rc, nil, f}
	if f == nil {
		got.answer, got.failure = r.send(rc)
	}
	arrivals <- got
}

// alternative reserves a place for an attempt at another target or, if there is none, at the same one. The attempt runs
// in parallel while the budget lasts. Without a budget it replaces a lost attempt, once per request. alternative returns
// nil if neither is possible.
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
	free := old.probe() && other // an attempt beside a breaker's probe costs no budget
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

// supersede ends the attempts that lost against winner. One of them, which passed its limit, is read to its end, unless
// an attempt at its target already is. Losing is not a failure.
func (r *run) supersede(racers []*racer, winner *racer, arrivals <-chan arrival, live int) {
	var kept *racer
	for i, rc := range racers {
		if rc == winner || r.recorded(rc) {
			continue
		}
		rc.life.Lose()
		if winner.parallel && r.proven(rc, winner) {
			r.guard("pace", r.Pace.Return)
		}
		if last := i == len(racers)-1; kept == nil && !last && !rc.replaced && rc.detach != nil && r.Losers.keep(rc.place(), rc.cancel) {
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

// proven reports whether the winner of a parallel start proves that the silent attempt rc was lost. Then the start counts
// as a replacement, which needs no budget.
func (r *run) proven(rc, winner *racer) bool {
	same := rc.ticket.Target.alike(winner.ticket.Target)
	return same && rc.life.Sign() == SignNone && winner.started.Sub(rc.started) >= rc.limits.Lost
}

// detachLosers lets the losers that are still read outlive the request, unless its client left.
func (r *run) detachLosers(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, rc := range r.losers {
		rc.detach()
	}
}

// watchPauses watches an answer during delivery. In a pause the timer's goroutine takes over the exchange, as in a
// race, and Deliver waits until it is given back.
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
				defer p.Done()
				r.rescue(ctx, rc, p)
			})
		}
		if again > 0 {
			t.Reset(again)
		}
	})
	t.Reset(first) // t is assigned now, so that its function may use it
	return t.Stop
}

// rescue asks for a continuation while the answer of rc pauses, twice at most. Fetching the stored answer does not count.
func (r *run) rescue(ctx context.Context, rc *racer, p *Pause) {
	f := r.failure(rc, Evidence{Phase: PhaseStream, Err: context.DeadlineExceeded})
	f.Released, f.Sent, f.Stalled, f.Job = ReleasedText, p.Sent, true, p.Job
	c := &r.x.Candidates[rc.choice]
	before := c.Silent
	c.Silent = true // while it pauses, other targets come first
	refused := false
	for try := 0; try < 2 && f != nil && p.Context.Err() == nil; try++ {
		next, ok := r.plan(ctx, f)
		if !ok {
			break
		}
		f = r.replace(ctx, rc, p, next)
		if refused = f != nil; next.Resume.fetches() { // a timeout means that the server still writes the answer
			try--
			refused = refused && f.Class() != Timeout
		}
	}
	if rc.rescued == nil {
		r.live, c.Silent = rc, before
	}
	if _, other := r.elsewhere(rc.choice); refused && !other && p.Context.Err() == nil {
		switch f.Class() {
		case RateLimit, QuotaExhausted, Overloaded: // these do not concern an answer that has begun
		default:
			p.Refused()
		}
	}
}

// replace makes one attempt that may take over from rc during its pause. It returns why that failed, nil if it took
// over or came too late.
func (r *run) replace(ctx context.Context, rc *racer, p *Pause, next Action) *Failure {
	// The attempt ends with the pause, unless it takes over.
	ctx, cancel := context.WithCancelCause(ctx)
	untie := context.AfterFunc(p.Context, func() { cancel(errSuperseded) })
	if !Wait(ctx, next.Wait) {
		cancel(nil)
		return nil
	}
	answer, f := r.attempt(ctx, next)
	switch {
	case answer == nil:
		r.dropKept() // a flawed end would not fit the text that the paused answer adds meanwhile
		cancel(nil)
		return f
	case untie() && p.Replace():
		rc.rescued = answer
	default:
		r.discardLive(answer)
		cancel(errSuperseded)
	}
	return nil
}
