package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	errSuperseded = errors.New("another attempt answered first")
	errBroke      = errors.New("internal error of the gateway")
	errDeadline   = fmt.Errorf("before an answer began: %w", context.DeadlineExceeded)
)

// racer is one running attempt.
type racer struct {
	choice   int // index of its candidate
	attempt  Attempt
	ticket   Ticket
	action   Action
	ctx      context.Context
	cancel   context.CancelCauseFunc // ends the attempt and, until it is delivered, its answer
	started  time.Time
	limits   Limits // as last computed by run.limit
	strategy string
	parallel bool
	life     Life
	silent   bool        // passed its limit without a sign of life
	replaced bool        // was abandoned for another attempt
	arrived  bool        // has ended or begun to answer
	detach   func() bool // lets the attempt outlive the request; nil if it cannot
	race     race        // the race that this attempt is the first of
	rescued  Answer      // the answer that took over while this attempt's answer paused
}

// probe reports whether the attempt probes a target whose breaker is half-open.
func (rc *racer) probe() bool { return rc.ticket.Probe || rc.ticket.ClientProbe }

// arrival is the result of Send for a racer.
type arrival struct {
	*racer
	answer  Answer
	failure *Failure
}

// attempt makes the attempt that action a describes and, if it stays silent too
// long, a second one beside it. The first to answer wins and becomes r.live.
//
// The first attempt runs in this goroutine. Once a limit passes, race takes over the exchange in a goroutine of its
// own, while this one waits in Send and touches nothing.
func (r *run) attempt(ctx context.Context, a Action) (Answer, *Failure) {
	first, f := r.admit(ctx, a)
	if f != nil {
		return nil, f
	}
	if f := r.start(ctx, first, a); f != nil {
		r.recordFailure(first, f)
		return nil, f
	}
	if first.detach != nil {
		return r.attemptAsync(ctx, first)
	}
	alarm := r.watch(ctx, first)
	answer, f := r.send(first)
	if !r.unwatch(alarm) {
		c := &first.race
		c.begin()
		c.arrivals <- arrival{first, answer, f}
		if got := <-c.result; got != nil {
			return got.answer, got.failure
		}
		if r.recorded(first) { // it failed after this attempt was abandoned
			if answer != nil {
				answer.Discard()
			}
			return nil, &Failure{Target: first.ticket.Target, Err: errBroke}
		}
	}
	if f == nil {
		r.live = first
		return answer, nil
	}
	r.failed(ctx, first, answer, f)
	return nil, f
}

// failed records the end of an attempt that was sent. A client that left counts against no target.
func (r *run) failed(ctx context.Context, rc *racer, answer Answer, f *Failure) {
	if ctx.Err() == nil {
		r.recordFailure(rc, f)
		r.keepFlawed(answer, f)
		return
	}
	r.end(rc, Outcome{}, "")
	if answer != nil {
		answer.Discard()
	}
}

// send makes one attempt. An attempt that panics counts as failed with errBroke, so that its place is released.
func (r *run) send(rc *racer) (answer Answer, f *Failure) {
	r.guard("attempt", func() { answer, f = r.sender.Send(rc.ctx, rc.attempt) })
	if answer == nil && f == nil {
		f = &Failure{Target: rc.ticket.Target, Err: errBroke}
	}
	return answer, f
}

// admit reserves a place at the action's target. If the target has no free place, admit switches to a candidate that
// has one, waits for the target, or sends anyway, as a plain proxy would. It returns a failure instead if the target has
// just refused this credential, or if a blind resend finds no place in time.
func (r *run) admit(ctx context.Context, a Action) (*racer, *Failure) {
	x, choice, resend := r.x, a.Target, a.Resend
	strategy := a.Strategy
	var patience, inLine time.Time // deadlines of the waits: for a resend's place, and for the end of a cool-down
	for {
		c, now := &x.Candidates[choice], time.Now()
		ticket, st := r.Health.Begin(c.Target, now, resend, false)
		if st.Ready {
			return r.racer(choice, ticket, now, strategy), nil
		}
		if i, ok := r.elsewhere(choice); ok && a.Resume == nil {
			choice, resend, strategy = i, false, "move"
			continue
		}
		if st.Refused != nil && x.Mode == ModeAct && !a.Resume.fetches() && !a.Resume.listens() {
			x.Did(StrategyKnown)
			known := *st.Refused
			if res := a.Resume; res != nil {
				c.Excluded = true
				r.resumeFailed(a, c, &known)
				known.Released, known.Sent = ReleasedText, res.Sent // only a continuation can follow
			}
			return nil, &known
		}
		if patience.IsZero() {
			patience, inLine = now.Add(r.crowdPatience()), now.Add(r.Config.WaitMax)
		}
		wait := max(st.Until.Sub(now), time.Millisecond)
		crowded := resend && !st.Cooling && !st.Open // enough resends are running there
		if crowded && now.After(patience) {
			r.stopped = true
			return nil, r.prev
		}
		if crowded || st.Cooling && !now.Add(wait).After(inLine) && x.Mode == ModeAct && now.Add(wait).Before(x.deadline) {
			x.Did("wait")
			if !Wait(ctx, wait) {
				err := context.Cause(ctx)
				return nil, &Failure{Diagnosis: r.Classifier.Classify(Evidence{Phase: PhaseConnect, Err: err, Now: time.Now()}), Target: c.Target, Err: err}
			}
			if crowded {
				x.idle += wait
			}
			continue
		}
		ticket, _ = r.Health.Begin(c.Target, now, false, true)
		return r.racer(choice, ticket, now, strategy), nil
	}
}

// racer returns a new attempt that holds a place. The first one of an exchange, usually the only one, uses
// memory of the run.
func (r *run) racer(choice int, ticket Ticket, now time.Time, strategy string) *racer {
	rc := &r.first
	if len(r.x.Attempts) > 0 {
		rc = &racer{}
	}
	rc.choice, rc.ticket, rc.started, rc.strategy = choice, ticket, now, strategy
	return rc
}

// elsewhere returns a candidate other than i that is available. It is called only for outages and limits, so any
// candidate will do that has not refused the request itself.
func (r *run) elsewhere(i int) (int, bool) {
	if r.x.Mode != ModeAct {
		return 0, false
	}
	for j := range r.x.Candidates {
		c := &r.x.Candidates[j]
		if j != i && !c.Unusable() && !c.Silent && !c.refused && r.Health.Check(c.Target).Ready {
			return j, true
		}
	}
	return 0, false
}

// start prepares a racer for sending. After that, the racer no longer accesses the exchange. A failure means that the
// request could not be built.
func (r *run) start(ctx context.Context, rc *racer, a Action) *Failure {
	x := r.x
	c := &x.Candidates[rc.choice]
	if rc.action = a; !a.Resume.fetches() {
		c.Tries++
	}
	x.Did(rc.strategy)
	if r.Losers != nil && len(x.Candidates) > 1 && x.Mode == ModeAct {
		rc.ctx, rc.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		rc.detach = context.AfterFunc(ctx, func() { rc.cancel(context.Cause(ctx)) })
	} else {
		rc.ctx, rc.cancel = context.WithCancelCause(ctx)
	}
	body, edited, err := r.build(c, a)
	ready := rc.started
	if edited {
		ready = time.Now() // building took time
	}
	rc.attempt = Attempt{Number: len(x.Attempts) + 1, Started: ready, Target: c.Candidate, Body: body, NoBetas: c.noBetas, Edited: edited, Resume: a.Resume,
		Explain: a.Explain, Plain: x.Mode != ModeAct, AcceptEmpty: x.AcceptEmpty(), Life: &rc.life, Idle: r.idle(c.Target), Cancel: rc.cancel}
	x.Attempts = append(x.Attempts, Record{Target: c.Target, Strategy: rc.strategy, Parallel: rc.parallel, Started: rc.started})
	if err != nil {
		return r.failure(rc, Evidence{Phase: PhaseConnect, Err: err})
	}
	return nil
}

// probePatience is how long a request that probes a half-open breaker waits before a second attempt starts at
// another target.
const probePatience = time.Second

// resumePatience is the first-token limit of a continuation whose target has none, since a client waits with half
// an answer.
const resumePatience = 3 * time.Minute

// limit returns how long an attempt may take to its first token, given its signs of life so far; 0 means no limit.
func (r *run) limit(rc *racer) time.Duration {
	if r.x.Mode != ModeAct {
		return 0
	}
	_, another := r.elsewhere(rc.choice)
	r.guard("pace", func() { rc.limits = r.Pace.Limits(r.x, rc.attempt.Target, another) })
	if rc.attempt.Resume != nil && rc.limits.Silent == 0 {
		rc.limits = Limits{resumePatience, resumePatience, resumePatience, resumePatience}
	}
	sign := rc.life.Sign()
	if another && rc.probe() && rc.attempt.Resume == nil && sign < SignWrites {
		return probePatience
	}
	return rc.limits.After(sign)
}

// idle returns how long an answer of a target may pause; 0 if unknown.
func (r *run) idle(t Target) (d time.Duration) {
	if r.x.Streaming && r.x.Mode == ModeAct {
		r.guard("pace", func() { d = r.Pace.Idle(t) })
	}
	return d
}

// deliver passes an answer to the client. Both results are nil if it was complete; it returns an answer if that
// replaced a paused one.
func (r *run) deliver(ctx context.Context, a Answer) (Answer, *Failure) {
	rc := r.live
	asked := !rc.action.Resume.fetches() // a model generated the answer; it was not fetched from storage
	if asked {
		r.guard("pace", func() { r.Pace.Answered(r.x, rc.attempt.Target, rc.started) })
	}
	if r.x.Fitting != nil {
		r.guard("fitter", func() { r.x.Fitting.Commit() })
	}
	if r.Flush != nil && len(r.x.Changed) > 0 { // the client's next request may come at once, at any replica
		r.Flush(ctx, r.x.Changed...)
	}
	if res := rc.attempt.Resume; res != nil && !res.Calls {
		r.reportResumed(res.Way)
	}
	unwatch := r.watchPauses(ctx, rc, a)
	rest, f := r.handOver(ctx, a, rc.ticket.Target)
	unwatch()
	rescued := rc.rescued
	usage, firstToken := a.Usage()
	rc.cancel(nil)
	if f == nil {
		r.x.ended = r.end(rc, Outcome{Success: true}, "")
		r.x.answered, r.x.usage, r.x.finish = rc.ticket.Target, usage, a.Finish()
		if !asked {
			return nil, nil
		}
		r.guard("pace", func() {
			r.Pace.Observe(r.x, rc.attempt.Target, firstToken, usage)
			if pause := a.LongestPause(); pause > 0 {
				r.Pace.ObservePause(rc.ticket.Target, pause)
			}
		})
		return nil, nil
	}
	if rest == nil { // otherwise the usage is added when the kept answer is discarded or delivered
		r.x.spent, r.x.partial = r.x.spent.Add(usage), usage
	}
	if ctx.Err() != nil || f.Client {
		r.end(rc, Outcome{}, "")
		if rescued != nil {
			r.discardLive(rescued) // it took over, but the client is gone
		}
		if rest != nil {
			rest.Discard()
		}
		return nil, f
	}
	r.recordFailure(rc, f)
	r.keepFlawed(rest, f)
	if rescued != nil {
		return rescued, nil
	}
	return nil, f
}

// reportResumed reports that the live attempt continues an answer.
func (r *run) reportResumed(way Way) {
	t := r.live.ticket.Target
	ev := r.event(EventStreamResumed, nil)
	ev.Target, ev.Strategy, ev.Way = t, r.live.strategy, way
	r.Observer.Observe(ev)
	if way == WayReplay && r.x.Body.Sampled() {
		r.repeaters.add(t)
	}
}

// handOver delivers an answer. If the delivery panics, it is unknown what the client received, so nothing can follow.
func (r *run) handOver(ctx context.Context, a Answer, by Target) (rest Answer, f *Failure) {
	if !r.guard("delivery", func() { rest, f = a.Deliver(ctx) }) {
		return nil, &Failure{Target: by, Err: errBroke, Break: Break{Released: ReleasedCall}}
	}
	return rest, f
}

// discardLive ends the live attempt without delivering its answer.
func (r *run) discardLive(answer Answer) {
	rc := r.live
	answer.Discard()
	rc.cancel(errSuperseded)
	r.end(rc, Outcome{}, "")
}

// recordFailure records a failed attempt: the outcome for the target's breaker, the consequences for the candidates,
// and the error that the client may get in the end.
func (r *run) recordFailure(rc *racer, f *Failure) {
	x := r.x
	c := &x.Candidates[rc.choice]
	f.Target, f.Attempt, f.Edited = c.Target, rc.attempt.Number, rc.attempt.Edited
	rc.cancel(nil)
	if rc.action.Resume.fetches() { // fetching shows nothing about the target's health
		x.free++
		r.end(rc, Outcome{}, f.Class())
		return
	}
	o := Outcome{Failure: f, Client: c.Client}
	switch {
	case f.Odd != "":
		o = Outcome{} // the target answered
	case x.Patience > 0 && errors.Is(f.Err, errDeadline):
		o = Outcome{} // the client's own timeout ended it
	}
	if f.Signal.Status != 0 {
		r.guard("pace", func() { r.Pace.ResetSilence(c.Target) })
	}
	r.end(rc, o, f.Class()) // the breaker counts it, or begins a cool-down

	if odd := f.oddity(); odd != "" {
		// A target that shows the same flaw twice would show it again.
		again := slices.Contains(c.oddities, odd)
		c.Excluded, f.Repeated = c.Excluded || again, again && f.Odd != ""
		c.oddities = append(c.oddities, odd)
	}
	r.count(f, c)
	c.refused = c.refused || !f.Edited && f.Scope() == ScopeRequest
	if rc.attempt.Resume != nil {
		r.resumeFailed(rc.action, c, f)
	}
	switch class := f.Class(); class {
	case Auth, QuotaExhausted, Permission:
		c.Excluded = true
	case ContextLengthExceeded, ModelNotFound:
		if res := rc.attempt.Resume; res != nil && !res.Calls {
			break // the target refused the form of the continuation, not the request
		}
		if class == ModelNotFound {
			x.exclude(c.Target)
			break
		}
		// The request is too long for this candidate and for those whose window is no larger.
		limit := max(f.Facts.LimitTokens, c.Window)
		for i := range x.Candidates {
			o := &x.Candidates[i]
			if o.Window == 0 {
				r.guard("windows", func() { o.Window = r.Knowledge.Window(x.Windowed(o.Target)) })
			}
			o.Small = o.Small || o.Target == c.Target || o.Window > 0 && o.Window <= limit
		}
	case Timeout:
		c.Silent = c.Silent || f.Signal.Phase <= PhaseHeaders
	case EmptyResponse:
		x.empties++
	}
	if f.Flaw != nil && f.Flaw.Kind == FlawUnsaid {
		x.empties++
	}
	c.Silent = c.Silent || f.Stalled
	if f.Released >= ReleasedText && r.cut == nil && (rc.attempt.Resume == nil || rc.attempt.Resume.Calls) {
		r.cut = f
	}
	if rc.attempt.Explain || f.causedByEdit() {
		return
	}
	if f.Signal.Status != 0 {
		r.last = f
	}
	if rc.choice == 0 && f.Spec != nil {
		if r.transient = f; f.Scope() == ScopeRequest {
			r.transient = nil
		}
	}
}

// resumeFailed records a failed continuation. The target does not get the same way again if the text did not match, or
// if it refused the way for another reason than an outage or a limit.
func (r *run) resumeFailed(a Action, c *Choice, f *Failure) {
	refused := f.Signal.Phase == PhaseStatus
	if !a.carried && (refused || f.Signal.Phase == PhaseConnect) {
		r.x.extra-- // the attempt was not billed; one that repeats another was not counted
	}
	c.Resumed = true
	if f.Diverged || f.Scope() == ScopeRequest || refused && f.Spec != nil && !f.Spec.Counts && !f.Spec.Cools {
		c.FailedWays = append(c.FailedWays, a.Resume.Way)
	}
}

// keepFlawed keeps a flawed answer for possible delivery. The first one stays while it still fits what the client has;
// the other is discarded.
func (r *run) keepFlawed(answer Answer, f *Failure) {
	if answer == nil {
		return
	}
	old := r.kept
	if r.kept = (kept{answer, f}); old.fits(f) {
		r.kept, old = old, r.kept
	}
	r.discard(old)
}

// fits reports whether the client had received the same at the later failure f as when the answer was kept, so that the
// answer still continues it.
func (k kept) fits(f *Failure) bool {
	return k.answer != nil && f.Released == k.failure.Released && f.Sent == k.failure.Sent
}

// discard drops a kept answer and records its usage.
func (r *run) discard(k kept) {
	if k.answer == nil {
		return
	}
	u, _ := k.answer.Usage()
	r.x.spent = r.x.spent.Add(u)
	k.answer.Discard()
}

// dropKept discards the kept answer, if any.
func (r *run) dropKept() {
	r.discard(r.kept)
	r.kept = kept{}
}

// deliverKept delivers the flawed answer that was kept.
func (r *run) deliverKept(ctx context.Context) (*Failure, error) {
	x, k := r.x, r.kept
	r.kept = kept{}
	by := k.failure.Target
	rest, f := r.handOver(ctx, k.answer, by)
	if rest != nil {
		rest.Discard()
	}
	x.answered = by
	x.usage, _ = k.answer.Usage()
	x.finish = k.answer.Finish()
	switch {
	case f == nil:
	case f.Client || ctx.Err() != nil:
		return nil, ErrClientGone
	default: // the kept answer does not fit the response that has begun in the meantime
		return r.giveUp(f), nil
	}
	ev := r.event(EventDegraded, nil)
	ev.Target, ev.Class, ev.Cause = by, ModelOutputInvalid, "delivered as the model wrote it"
	r.Observer.Observe(ev)
	return nil, nil
}

// end releases an attempt's place and closes its record.
func (r *run) end(rc *racer, o Outcome, class Class) (at time.Time) {
	o.At = time.Now()
	rc.ticket.Place.Done(rc.ticket, o)
	r.close(rc, class, o.At)
	return o.At
}

// close sets the class and duration of an attempt's record.
func (r *run) close(rc *racer, class Class, at time.Time) {
	rec := &r.x.Attempts[rc.attempt.Number-1]
	rec.Class, rec.Duration = class, max(at.Sub(rc.started), 1)
}

// recorded reports whether an attempt's end is recorded.
func (r *run) recorded(rc *racer) bool { return r.x.Attempts[rc.attempt.Number-1].Duration != 0 }

// failure classifies an error on the gateway's side.
func (r *run) failure(rc *racer, ev Evidence) *Failure {
	f := &Failure{Diagnosis: r.Classifier.Classify(ev), Target: rc.ticket.Target, Attempt: rc.attempt.Number, Err: ev.Err}
	if res := rc.action.Resume; res != nil {
		f.Released, f.Sent = ReleasedText, res.Sent // only a continuation can follow
	}
	return f
}
