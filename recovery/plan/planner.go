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

// Values is the store as this package needs it.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
}

// Rings are the store's rings: what is pushed has one order for all replicas.
type Rings interface {
	Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error)
}

// Board keeps what waits for approval, for all replicas. No I/O.
type Board interface {
	Lookup(board, field string) (store.Field, bool)
	Post(board string, f store.Field, max bool)
	Each(board string, fn func(store.Field) bool)
}

// Reader reads what models write. It is pure and safe for concurrent use.
type Reader interface {
	// Object finds the one JSON object in a text that a schema accepts, mended where
	// it can only mean one thing.
	Object(text string, schema []byte) (object string, ok bool)
	// Fits reports whether arguments are what a tool takes.
	Fits(t transcript.Tool, arguments string) bool
}

// Rules are those that notes keep to. Safe for concurrent use.
type Rules interface {
	// Permits reports whether a command may be proposed: none that runs as another
	// user, and nothing risky unless that is allowed.
	Permits(command string) bool
	// HeldOut reports whether the session's models are told nothing.
	HeldOut(session string) bool
}

// Parts are what a Planner works with.
type Parts struct {
	// Store shares plans among replicas; nil keeps them in the process only.
	Store Values
	// StoreTime bounds the time that one request spends with the store.
	StoreTime time.Duration
	// Decisions tells which of several decisions about a plan was the first.
	Decisions Rings
	Board     Board
	Reader    Reader
	Rules     func() Rules // those in force
	Observer  recovery.Observer
	// Known is the strategy that is known to help, without a planner; nil knows none. It
	// must not block.
	Known func(q recovery.Question) (recovery.LearnedPattern, bool)
	// Accepted reports whether an upstream has accepted the exchange's credential: for
	// others nothing is asked and nothing is kept.
	Accepted func(x *recovery.Exchange) bool
	// Waiting is told of plans that wait for approval; it must not block. May be nil.
	Waiting func(recovery.Approval)
}

// Planner is the stage that asks a planner. Safe for concurrent use; Close ends its goroutines.
type Planner struct {
	cfg   atomic.Pointer[Config]
	parts Parts
	ctx   context.Context // of everything off a request's path
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	states *store.Cache[string, *state]    // by session
	spared *store.Cache[target, time.Time] // what is not asked until then
	made   []recovery.MadePlan             // the latest plans, the oldest first
	calls  map[string]*call                // under way, by session
}

var _ recovery.Stage = (*Planner)(nil)

// maxStates bounds the states in the process, in bytes.
const maxStates = 8 << 20

// New returns a planner without plans.
func New(cfg Config, p Parts) *Planner {
	s := &Planner{parts: p, states: store.NewCache[string, *state](maxStates), spared: store.NewCache[target, time.Time](maxSpared), calls: map[string]*call{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.cfg.Store(&cfg)
	return s
}

// Reconfigure applies other settings to requests from now on.
func (s *Planner) Reconfigure(cfg Config) { s.cfg.Store(&cfg) }

// Close ends what is under way, and waits for it.
func (s *Planner) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
}

// behind runs f off the request's path; false once the planner is closed.
func (s *Planner) behind(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

// Prepare implements recovery.Stage: where the agent is stuck it sets the
// exchange's Plan, if there is one, and has one made for the next request, if not.
func (s *Planner) Prepare(ctx context.Context, x *recovery.Exchange) error {
	if x.Ladder.Rung < recovery.RungStuck { // nearly all
		return nil
	}
	cfg := s.cfg.Load()
	if !cfg.Enabled() || x.Mode == recovery.ModeOff || x.Mode == recovery.ModeObserve || x.Session == "" || len(x.Candidates) == 0 {
		return nil
	}
	rules := s.parts.Rules()
	t, stuck := troubleOf(x)
	if !stuck || rules.HeldOut(x.Session) || !s.parts.Accepted(x) {
		return nil
	}
	slot := slotOf(x)
	st := s.recall(ctx, x, t, slot)
	acts := cfg.Mode == ModeAct
	if x.Reply != nil { // the session is stopped: what was planned may say it better
		if acts && st.Plan != nil && st.Plan.Message != "" && !x.Reply.Error {
			x.Reply.Text += "\n\n" + st.Plan.Message
		}
		return nil
	}
	if st.usable(slot) {
		if acts {
			s.apply(x, st, slot)
		}
		return nil
	}
	if next := s.learned(x, cfg, t, st, slot, acts); next != nil {
		if acts {
			s.apply(x, next, slot)
		}
		return nil
	}
	c, fresh := s.ask(x, cfg, t, st, slot)
	if c == nil && acts {
		s.instead(x, st, slot)
	}
	if c == nil || !acts || t.count < waitsFrom || fresh && st.Asked == 0 {
		return nil // the next request has it
	}
	switch next := s.await(ctx, c, cfg.Wait); {
	case ctx.Err() != nil:
	case next == nil: // the call goes on, for the next request
		asked := c.next
		s.rule(x, &asked, max(asked.Asked, st.Ruled+1), slot, errLate.Error()+": "+cfg.Wait.String(), cfg.Wait)
	case next.usable(slot):
		s.apply(x, next, slot)
	}
	return nil
}

// waitsFrom is the number of times from which a request waits for a plan.
const waitsFrom = 3

// await waits for a call, at most d; nil if it is late or the client has left.
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

// apply puts a plan into the exchange, unless it waits for approval or was refused.
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
		case known: // refused: it is not asked for again either
			next.Plan, next.Asked = nil, maxAsked
			s.remember(x.Session, []byte(x.Secret), &next)
			return
		case st.Used == "":
			s.report(x.Event(recovery.EventApproval), &p, Expired)
		}
	}
	x.Plan = &p
	if st.Used == "" {
		next.Used = slot
		s.remember(x.Session, []byte(x.Secret), &next)
	}
}

// report sends an event about a plan.
func (s *Planner) report(ev recovery.Event, p *recovery.Plan, cause string) {
	ev.Plan, ev.Strategy, ev.Cause = p.Bare(), string(p.Strategy), cause
	s.parts.Observer.Observe(ev)
}
