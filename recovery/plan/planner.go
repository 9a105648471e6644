package plan

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Values is the part of the store that holds plans.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
}

// Rings is the part of the store with rings, whose pushes have one order on all replicas.
type Rings interface {
	Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error)
}

// Board holds approvals for all replicas. Its methods do no I/O.
type Board interface {
	Lookup(board, field string) (store.Field, bool)
	Post(board string, f store.Field, max bool)
	Each(board string, fn func(store.Field) bool)
}

// Reader parses the output of models. It is pure and safe for concurrent use.
type Reader interface {
	// Object finds the one JSON object in a text that matches a schema; it repairs the object if there is only one
	// possible meaning.
	Object(text string, schema []byte) (object string, ok bool)
	// Fits reports whether arguments match a tool's parameters.
	Fits(t transcript.Tool, arguments string) bool
}

// Rules are the rules that notes follow. They are safe for concurrent use.
type Rules interface {
	// Permits reports whether a command may be proposed: it must not run as another user, and a risky one needs the
	// configuration's permission.
	Permits(command string) bool
	// HeldOut reports whether the session gets no notes.
	HeldOut(session string) bool
}

// Parts are the dependencies of a Planner.
type Parts struct {
	// Store shares plans between replicas, and limits how long it takes; nil keeps them in the process only.
	Store Values
	// Decisions orders concurrent decisions about a plan.
	Decisions Rings
	Board     Board
	Reader    Reader
	Rules     func() Rules // the current ones
	Observer  recovery.Observer
	// Known returns a strategy that was learned to help, without a planner; nil disables this. It must not block.
	Known func(q recovery.Question) (recovery.LearnedPattern, bool)
	// Accepted reports whether an upstream has accepted the exchange's credential. For other credentials no planner is
	// asked and nothing is stored.
	Accepted func(x *recovery.Exchange) bool
	// Waiting is called for each plan that waits for approval; it must not block. May be nil.
	Waiting func(recovery.Approval)
}

// Planner is the stage that asks a planner. It is safe for concurrent use; Close ends its goroutines.
type Planner struct {
	cfg   atomic.Pointer[Config]
	parts Parts
	ctx   context.Context // parent of all work outside of requests
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	states *store.Cache[string, *state]    // by session
	paused *store.Cache[target, time.Time] // planners that are not asked before that time
	made   []recovery.MadePlan             // the latest plans, oldest first
	calls  map[string]*call                // running, by session
}

var _ recovery.Stage = (*Planner)(nil)

// maxStates limits the cached states, in bytes.
const maxStates = 8 << 20

// New returns a planner without plans.
func New(cfg Config, p Parts) *Planner {
	s := &Planner{parts: p, states: store.NewCache[string, *state](maxStates), paused: store.NewCache[target, time.Time](maxPaused), calls: map[string]*call{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.cfg.Store(&cfg)
	return s
}

// Reconfigure applies cfg to later requests.
func (s *Planner) Reconfigure(cfg Config) { s.cfg.Store(&cfg) }

// Close cancels running calls and waits for them.
func (s *Planner) Close() {
	s.mu.Lock()
	s.stop() // under the lock, so that no call starts after it
	s.mu.Unlock()
	s.work.Wait()
}

// Prepare implements recovery.Stage: if the agent is stuck, it sets the exchange's Plan, or starts a call for a
// plan for the next request.
func (s *Planner) Prepare(ctx context.Context, x *recovery.Exchange) error {
	if x.Ladder.Rung < recovery.RungStuck { // nearly all requests
		return nil
	}
	cfg := s.cfg.Load()
	if !cfg.Enabled() || x.Mode == recovery.ModeOff || x.Mode == recovery.ModeObserve || x.Session == "" || len(x.Candidates) == 0 {
		return nil
	}
	t, stuck := troubleOf(x)
	if !stuck || s.parts.Rules().HeldOut(x.Session) || !s.parts.Accepted(x) {
		return nil
	}
	slot := slotOf(x)
	st := s.recall(ctx, x, t, slot)
	acts := cfg.Mode == ModeAct
	if x.Reply != nil { // a stopped session: the plan's question may explain more
		if acts && st.Plan != nil && st.Plan.Message != "" && !x.Reply.Error {
			x.Reply.Text += "\n\n" + st.Plan.Message
		}
		return nil
	}
	known := st
	if !st.usable(slot) {
		known = s.learned(x, cfg, t, st, slot, acts)
	}
	switch {
	case known == nil:
		s.consult(ctx, x, cfg, t, st, slot)
	case acts:
		s.apply(x, known, slot)
	}
	return nil
}

// consult asks the planner, unless it is being asked. The next request gets the plan. From the trouble's third occurrence
// on, and not for the first question, this request waits for it.
func (s *Planner) consult(ctx context.Context, x *recovery.Exchange, cfg *Config, t trouble, st *state, slot string) {
	acts := cfg.Mode == ModeAct
	c, fresh := s.ask(x, cfg, t, st, slot)
	if c == nil && acts {
		s.applyFallback(x, st, slot)
	}
	if c == nil || !acts || t.count < waitsFrom || fresh && st.Asked == 0 {
		return
	}
	switch next := s.await(ctx, c, cfg.Wait); {
	case ctx.Err() != nil:
	case next == nil: // the call continues, for the next request
		asked := c.next
		s.applyHeuristic(x, &asked, max(asked.Asked, st.Heuristics+1), slot, errLate.Error()+": "+cfg.Wait.String(), cfg.Wait)
	case next.usable(slot):
		s.apply(x, next, slot)
	}
}

// waitsFrom is the count of occurrences from which a request waits for a plan.
const waitsFrom = 3

// await waits for a call, at most d; it returns nil if the call takes longer or the client has left.
func (s *Planner) await(ctx context.Context, c *call, d time.Duration) *state {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.result
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// apply sets the exchange's plan, unless the plan waits for approval or was refused.
func (s *Planner) apply(x *recovery.Exchange, st *state, slot string) {
	p := *st.Plan
	next := *st
	if st.Approval != "" {
		a, known := s.approval(st.Approval)
		switch {
		case known && a.State == Waiting:
			return
		case known && a.State == Approved:
			p.Band = recovery.BandAct
		case known: // refused: no further approval is requested
			next.Plan, next.Asked = nil, maxAsked
			s.remember(x.Session, []byte(x.Secret), &next)
			x.Changed = append(x.Changed, stateKey(x.Session))
			return
		case st.Used == "":
			s.report(x.Event(recovery.EventApproval), &p, Expired)
		}
	}
	x.Plan = &p
	if st.Used == "" {
		next.Used = slot
		s.remember(x.Session, []byte(x.Secret), &next)
		x.Changed = append(x.Changed, stateKey(x.Session))
	}
}

// report emits an event about a plan.
func (s *Planner) report(ev recovery.Event, p *recovery.Plan, cause string) {
	ev.Plan, ev.Strategy, ev.Cause = p.Bare(), string(p.Strategy), cause
	s.parts.Observer.Observe(ev)
}
