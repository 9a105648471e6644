package recovery

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Stage prepares an exchange once, before the first attempt. An error rejects
// the request; a stage that cannot help returns nil.
type Stage interface {
	Prepare(ctx context.Context, x *Exchange) error
}

// Attempt describes one upstream attempt. It is immutable, and the only data of the exchange that a parallel attempt
// reads.
type Attempt struct {
	Number      int
	Started     time.Time // when Body was ready
	Target      Candidate
	Body        []byte   // the request that goes upstream
	NoBetas     []string // names that the header anthropic-beta loses
	Edited      bool     // Body or that header differs from the client's by more than the model's name
	Resume      *Resume  // nil for an answer from its beginning
	Plain       bool     // deliver any answer unchecked, as a plain proxy would
	Explain     bool     // the answer is marked as the gateway's
	AcceptEmpty bool
	Idle        time.Duration           // longest usual pause of the target's answers; 0 if unknown
	Life        *Life                   // records the attempt's signs of life
	Cancel      context.CancelCauseFunc // ends the attempt's context
}

// Sender makes exactly one upstream attempt; it never retries and makes no decisions. Send returns when the first
// meaningful event or the complete answer has arrived, or returns a failure. An answer that comes with a failure is
// complete but flawed. Cancelling ctx ends the attempt and, until Deliver returns, its answer.
type Sender interface {
	Send(ctx context.Context, a Attempt) (Answer, *Failure)
}

// Answer is an attempt that has begun to answer. Exactly one of Deliver, Discard and
// Drain is called, once.
type Answer interface {
	// Deliver writes the answer to the client. The failure is nil if the answer was complete. With a failure, rest is
	// the undelivered part of an answer that is complete but flawed; nil if there is none.
	Deliver(ctx context.Context) (rest Answer, f *Failure)
	// Paused returns the current pause of the answer if it is long enough to look for a replacement, else nil; again is
	// the time until the next check, 0 for never. Another goroutine calls it while Deliver runs.
	Paused(ctx context.Context) (p *Pause, again time.Duration)
	// LongestPause returns the longest pause of the upstream during delivery; 0 for an answer that arrived at once.
	LongestPause() time.Duration
	// Discard drops the answer.
	Discard()
	// Drain reads an answer that no client gets to its end, for its usage.
	Drain()
	// Usage returns the usage that the upstream reported, and the time from the attempt's start to the first meaningful
	// event. It is called after Deliver or Drain, or for a kept answer, which is complete.
	Usage() (u Usage, firstToken time.Duration)
	// Finish returns why the model ended the last choice, FinishNone if that is unknown.
	Finish() Finish
}

// Pause is a pause of an answer during delivery. Deliver blocks until Done is called.
type Pause struct {
	Context context.Context // ends when the upstream sends more of the answer
	Sent    string          // the text that the client has
	Job     *Job            // as in Breach
	Replace func() bool     // abandons the answer for another one; false if the upstream has sent more of it
	Done    func()          // ends the pause; must be called once
	// Refused records that no target continues the answer. Then a stream without any bytes is given up after half a
	// minute instead of two.
	Refused func()
}

// Status reports whether a target may get requests now.
type Status struct {
	Ready   bool
	Cooling bool      // a rate limit or another limit lasts until Until
	Open    bool      // its breaker is open or half-open, since too many recent attempts failed
	Until   time.Time // when to check again
	// Opened is when its breaker last opened; zero once probes have succeeded. Without traffic an open breaker closes
	// after a while, so a closed breaker alone does not prove that the target works again.
	Opened time.Time
	// Refused is the target's latest refusal of this credential, whose quota is used up; nil if there is none. It is
	// shared and must not be changed.
	Refused *Failure
}

// Ticket is a reserved place for one attempt at a target. Place.Done releases it.
type Ticket struct {
	Place       Place
	Target      Target
	Client      string // client of the request; empty if clients are not distinguished
	Resend      bool
	Probe       bool // the attempt probes the target, whose breaker is half-open
	ClientProbe bool // the attempt probes the client's own breaker, which is half-open
}

// Place releases a ticket. Done is called exactly once for each ticket. Safe for concurrent use.
type Place interface {
	Done(t Ticket, o Outcome)
}

// Outcome is how an attempt ended, for a breaker. Without Success and Failure it is neutral, as when the client left.
type Outcome struct {
	At      time.Time // when the attempt ended; zero means now
	Success bool
	Failure *Failure
	Client  bool // the attempt used the client's own credential, so limits concern this client only
	Dead    bool // the failure alone proves that the target is down
	Several bool // attempts of several clients prove it
}

// Health knows which targets may be used now. Safe for concurrent use; no I/O.
type Health interface {
	Check(t Target) Status
	// Begin reserves a place for an attempt that starts now. With resend it takes one of the few places for blind
	// resends; with force it succeeds whatever the status.
	Begin(t Target, now time.Time, resend, force bool) (Ticket, Status)
	// For returns the health of targets as one client sees it; the client is empty if clients are not distinguished.
	// A failure that only one client's requests cause closes a target only to that client.
	For(client string) Health
}

// Knowledge remembers what targets refuse, and their pace. Safe for concurrent use; no I/O.
type Knowledge interface {
	// Edits returns the edits that requests to this target are known to need.
	Edits(t Target) []Edit
	// Window returns a target's context window in tokens, 0 if it is unknown.
	Window(t Target) int
	// Learn adds edits that made a target accept a request; request is its id. With a key they are for that account, without
	// one for all.
	Learn(t Target, edits []Edit, request string)
	// Forget removes a target's edits.
	Forget(t Target)
}

// Pace knows how long targets take to their first token, and which are silent. Safe for concurrent use.
type Pace interface {
	// Limits returns how long an attempt may be silent. alternative is set if another target is available.
	Limits(x *Exchange, c Candidate, alternative bool) Limits
	// Answered records the first token of an attempt that was sent at a time.
	Answered(x *Exchange, c Candidate, sent time.Time)
	// Overtaken reports whether a later attempt of the same kind, with an input at least as large, has already got its
	// first token. sent is the start of the earlier attempt.
	Overtaken(x *Exchange, c Candidate, sent time.Time) bool
	// Observe records the time to the first token and the usage of a complete answer.
	Observe(x *Exchange, c Candidate, firstToken time.Duration, u Usage)
	// ObservePause records the longest pause of a complete answer. Idle returns how long an answer may pause before
	// another attempt starts; 0 if too few answers are known.
	ObservePause(t Target, pause time.Duration)
	Idle(t Target) time.Duration
	// Allow takes one parallel start out of the budget; Return gives it back.
	Allow(x *Exchange) bool
	Return()
	// Silent records an attempt that was silent beyond its limit. Silence returns how many there were since the
	// target's last answer, and whether they came from several clients. ResetSilence sets the count to zero.
	Silent(x *Exchange, t Target)
	Silence(t Target) (n int, several bool)
	ResetSilence(t Target)
}

// Keeper remembers the target of a session after a failover. Safe for concurrent use.
type Keeper interface {
	Keep(pin string, t Target)
}

// Engine runs exchanges. It is immutable and safe for concurrent use.
type Engine struct {
	Config     Config
	Stages     []Stage
	Strategies []Strategy
	Classifier Classifier
	Health     Health
	Knowledge  Knowledge
	Pace       Pace
	Keeper     Keeper
	Makers     Makers    // nil: nothing is remembered about accounts
	Losers     *Losers   // nil: attempts that lose a race are cancelled
	Conformer  Conformer // nil: no target needs schemas adapted
	Observer   Observer
	Tokens     Counter // nil: tokens are estimated by size
	// Flush waits briefly until the store has copied values for the other replicas; nil means that there are none.
	Flush func(ctx context.Context, keys ...string)

	alarms    sync.Pool // of *alarm
	common    commonErrors
	repeaters repeaters
}

// The errors of Engine.Run for an exchange that ends without an upstream's answer or failure.
var (
	ErrNoTarget   = errors.New("no target serves this model")
	ErrDisabled   = errors.New("an operator has disabled all targets of this model")
	ErrClientGone = errors.New("the client left")
	ErrReplied    = errors.New("the gateway answers itself")
)

// Run answers one exchange. Both results are nil if the client got a complete answer. The caller must deliver a failure
// to the client; see giveUp for its choice. Errors are ErrNoTarget, ErrClientGone, ErrReplied (the caller delivers
// x.Reply), and those of stages.
func (e *Engine) Run(ctx context.Context, x *Exchange, s Sender) (*Failure, error) {
	r := &run{Engine: e, x: x, sender: s, Health: e.Health.For(x.Client())}
	x.config = &e.Config
	x.deadline = x.Started.Add(r.patience())
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if x.Reply != nil {
		x.Did(x.Reply.Action)
		return nil, ErrReplied
	}
	if len(x.Candidates) == 0 {
		return nil, ErrNoTarget
	}
	defer r.dropKept()
	defer r.detachLosers(ctx)
	r.applyServerState()
	r.applyFitted()
	next := Action{Target: r.firstReady()}
	for {
		answer, f := r.attempt(ctx, next)
		for answer != nil {
			answer, f = r.deliver(ctx, answer)
		}
		if f == nil {
			r.guard("learner", r.succeeded)
			return nil, nil
		}
		if ctx.Err() != nil || f.Client {
			return nil, ErrClientGone
		}
		var ok bool
		if next, ok = r.plan(ctx, f); !ok {
			if r.kept.fits(f) {
				return r.deliverKept(ctx)
			}
			return r.giveUp(f), nil
		}
		r.prev = f
		if !Wait(ctx, next.Wait) {
			return nil, ErrClientGone
		}
	}
}

// prepare runs the stages. What a stage found before it panicked does not count.
func (r *run) prepare(ctx context.Context) error {
	for _, st := range r.Stages {
		var err error
		before := r.x.Findings
		if !r.guard("stage", func() { err = st.Prepare(ctx, r.x) }) {
			r.x.Findings = before
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patience returns how long the client waits for the first byte.
func (r *run) patience() time.Duration {
	if r.x.Patience > 0 {
		return r.x.Patience
	}
	return r.Config.Deadline
}

// firstReady returns the index of the first candidate that is available, 0 if none is or if the
// gateway may not act.
func (r *run) firstReady() int {
	x := r.x
	if x.Mode != ModeAct || len(x.Candidates) == 1 {
		return 0
	}
	for i := range x.Candidates {
		if r.Health.Check(x.Candidates[i].Target).Ready {
			return i
		}
	}
	return 0
}

// run is the state of one Engine.Run. The goroutine that owns the exchange owns it too.
type run struct {
	*Engine
	Health  Health // as the client sees it
	x       *Exchange
	sender  Sender
	first   racer    // memory of the first attempt
	live    *racer   // the attempt that answers
	current Action   // the action that the current attempt carries out
	stopped bool     // no further attempt may be made
	losers  []*racer // abandoned attempts that are still read to their end

	replaced bool // a silent attempt was abandoned for another
	failures
	kept kept
}

// failures are the failures that may be reported to the client in the end.
type failures struct {
	prev *Failure // the failure before the current attempt; nil for the first attempt
	cut  *Failure // the first failure after text was delivered
	last *Failure // the last failure that came from an upstream and that no edit of the gateway caused
	// transient is the last failure of the first target, unless that one refused the request itself.
	transient *Failure
	// spare is the failure of a fallback that was set aside, and after which clients retry.
	spare *Failure
}

// kept is a complete but flawed answer with its failure. The client gets it unchanged if no better answer comes.
type kept struct {
	answer  Answer
	failure *Failure
}

// plan asks the failure's strategies for the next action, within the limits.
func (r *run) plan(ctx context.Context, f *Failure) (Action, bool) {
	x := r.x
	if a, ok := r.reattach(f); ok {
		r.recordAction(a, f)
		return a, true
	}
	if f.Released >= ReleasedCall || f.Spec == nil || r.stopped || f.Released > ReleasedNothing && !x.state.MayContinue(x.Keeps) {
		return Action{}, false
	}
	plan, resumes := f.Spec.Plan, f.Released == ReleasedText && f.Flaw == nil
	if resumes && f.Diverged && r.kept.fits(f) {
		return Action{}, false // a complete answer is kept, and no other attempt can get its calls
	}
	if resumes {
		// The client has the beginning of an answer, which only a continuation can complete, whatever the class of the
		// latest failure.
		plan = []string{"resume"}
		if x.Mode == ModeAct {
			r.probe(ctx)
		}
		for i := range x.Candidates {
			x.Candidates[i].Repeats = r.repeaters.contains(x.Candidates[i].Target)
		}
		x.deadline = time.Now().Add(r.patience())
	}
	if f.Signal.Phase == PhaseStatus {
		x.Candidates[(&Situation{Exchange: x}).Current(f)].retractUseless(f.Signal.Message)
	}
	s := &Situation{Exchange: x, Config: &r.Config, Health: r.Health, Now: time.Now(), Jitter: rand.Float64, Changes: r.changes}
	switch x.Mode {
	case ModeAct:
	case ModeAnnotate:
		plan = nil // only the failure of an edited request is recovered, by sending the original
	case ModeObserve:
		r.observe(s, f)
		return Action{}, false
	default:
		return Action{}, false
	}
	if r.exhausted(resumes) {
		return Action{}, false
	}
	for st := range r.planned(plan) {
		a, ok := r.propose(st, s, f)
		if !ok || a.Explain && r.onlyFallback(f) || !r.allowed(&a) || !r.inTime(&a, f) || s.Now.Add(a.Wait).After(x.deadline) || a.Fit && (x.plain || !r.fit(ctx, a, f)) {
			continue
		}
		a.Strategy = st.Name
		a = r.keepNote(a, f)
		r.measure(a)
		r.recordAction(a, f)
		return a, true
	}
	if a, ok := r.original(s, f); ok {
		r.recordAction(a, f)
		return a, true
	}
	return r.withoutFallback(ctx, f)
}

// propose asks one strategy. A strategy that panics proposes nothing.
func (r *run) propose(st Strategy, s *Situation, f *Failure) (a Action, ok bool) {
	r.guard(st.Name, func() { a, ok = st.Propose(s, f) })
	return a, ok
}

// keepNote copies the note of the failed attempt to an action that only repeats that attempt, at the same target or
// another one.
func (r *run) keepNote(a Action, f *Failure) Action {
	d := r.current
	if f.Scope() == ScopeRequest || f.Flaw != nil || a.Reask || a.Explain || a.Resume != nil || !d.Reask && !d.Explain && !d.carried {
		return a
	}
	a.Note, a.Tool, a.Explain, a.carried = d.Note, d.Tool, d.Explain, true
	if d.Resume != nil && d.Resume.Calls {
		a.Resume = d.Resume
	}
	return a
}

// original returns to the client's own bytes if an edited request was refused and no strategy helps: the edit may
// be the cause.
func (r *run) original(s *Situation, f *Failure) (Action, bool) {
	if r.x.plain || !f.causedByEdit() || f.Released > ReleasedNothing {
		return Action{}, false
	}
	i := s.Current(f)
	if r.x.Candidates[i].refused {
		return Action{}, false
	}
	if r.x.Force != "" { // some servers and reasoning models refuse tool_choice; the note names the tool as well
		r.x.Force = ""
		return Action{Strategy: StrategyOriginal, Target: i}, true
	}
	return Action{Strategy: StrategyOriginal, Target: i, Plain: true}, true
}

// observe reports the action that act mode would have taken.
func (r *run) observe(s *Situation, f *Failure) {
	for st := range r.planned(f.Spec.Plan) {
		if a, ok := r.propose(st, s, f); ok {
			ev := r.event(EventRecoveryAttempt, f)
			ev.Strategy, ev.Wait, ev.Observed = st.Name, a.Wait, true
			r.Observer.Observe(ev)
			return
		}
	}
}

// planned yields the strategies that a plan names, in its order.
func (e *Engine) planned(names []string) iter.Seq[Strategy] {
	return func(yield func(Strategy) bool) {
		for _, name := range names {
			if i := slices.IndexFunc(e.Strategies, func(st Strategy) bool { return st.Name == name }); i >= 0 && !yield(e.Strategies[i]) {
				return
			}
		}
	}
}

// recordAction records an action: its edits, its wait, and an event.
func (r *run) recordAction(a Action, f *Failure) {
	x := r.x
	c := &x.Candidates[a.Target]
	if len(a.Edits) > 0 {
		c.Edits = append(c.Edits, a.Edits...)
		c.latest = a.Edits
		if f.Quoted || a.Once {
			c.requestEdits = append(c.requestEdits, a.Edits...)
		} else if a.Account {
			c.accountEdits = append(c.accountEdits, a.Edits...)
		}
	}
	if a.Plain {
		x.plain, c.Edits, x.Fitted = true, nil, nil
		c.doubted = c.learned // if the client's own bytes succeed, the learned edits are wrong
	}
	if a.Wait > 0 && !a.Resend {
		c.Waits++
	}
	if f.Free && !a.Stated {
		x.idle += a.Wait
	}
	if a.Resume != nil && a.Resume != r.current.Resume && !a.Resume.fetches() || a.Resume == nil && a.Reask && f.Flaw != nil {
		x.extra++
	}
	r.current = a
	x.explained = x.explained || a.Explain
	if a.Reask {
		x.reasks++
	} else if a.Note != "" {
		x.notes++
	}
	ev := r.event(EventRecoveryAttempt, f)
	ev.Strategy, ev.Wait = a.Strategy, a.Wait
	if n := f.Attempt; n > 0 {
		ev.Duration = x.Attempts[n-1].Duration
	}
	r.Observer.Observe(ev)
}

// succeeded learns from the answer: it remembers the edits that helped and the target of the session, and forgets learned
// edits that were wrong.
func (r *run) succeeded() {
	x, c := r.x, &r.x.Candidates[r.live.choice]
	if c.doubted {
		r.Knowledge.Forget(x.Known(c.Target))
	}
	forAll, own := c.lasting()
	if len(forAll) > 0 {
		r.Knowledge.Learn(x.Known(c.Target.Keyless()), forAll, x.ID)
	}
	if len(own) > 0 {
		r.Knowledge.Learn(x.Known(c.Target), own, x.ID)
	}
	if x.Fitting != nil && x.Mode == ModeAct {
		r.guard("fitter", func() { x.Fitting.Learn(c, x.usage) })
	}
	r.common.answered(c.Target)
	r.answeredBy(c)
	if x.Pin != "" && r.live.choice > 0 {
		r.Keeper.Keep(x.Pin, c.Target)
	}
	if x.fallback = x.Fallback(c.Target); x.fallback {
		r.reportAnswer(EventFallbackUsed, c.Target)
	}
	if len(x.Attempts) > 1 {
		r.reportAnswer(EventRecoverySuccess, c.Target)
	}
}

// reportAnswer sends an event about the final answer's attempt.
func (r *run) reportAnswer(name EventName, t Target) {
	ev := r.event(name, nil)
	ev.Target, ev.Strategy = t, r.live.strategy
	r.Observer.Observe(ev)
}

// giveUp returns the failure that the client gets: the first one after text was delivered, else the last one that came
// from an upstream itself.
func (r *run) giveUp(f *Failure) *Failure {
	if r.cut != nil {
		// A continuation's failure is not the failure of the answer.
		released := f.Released
		f = r.cut
		f.Released = max(f.Released, released)
	} else {
		if (f.Signal.Status == 0 || r.x.explained || f.causedByEdit()) && r.last != nil {
			f = r.last
		}
		switch {
		case f.Class().Retryable():
		case r.transient != nil && r.onlyFallback(f):
			f = r.transient // clients retry after it
		case r.spare != nil && f.Scope() == ScopeCredential:
			f = r.spare
		}
	}
	ev := r.event(EventRecoveryFailed, f)
	if n := len(r.x.Attempts); n > 0 {
		ev.Strategy = r.x.Attempts[n-1].Strategy
	}
	if r.x.Mode == ModeAct {
		r.Observer.Observe(ev)
	}
	return f
}

func (r *run) event(name EventName, f *Failure) Event {
	x := r.x
	ev := x.Event(name)
	ev.Attempt, ev.Cost = len(x.Attempts), x.spent
	if f != nil {
		ev.Target, ev.Class, ev.Rule, ev.Status, ev.Upstream = f.Target, f.Class(), f.Rule, f.Signal.Status, f.Upstream
		if f.Flaw != nil {
			ev.Flaw = f.Flaw.Kind
		}
		if f.Err != nil {
			ev.Cause = f.Err.Error()
		}
	}
	return ev
}
