package breaker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Set holds the breakers of all targets. Safe for concurrent use.
type Set struct {
	cfg      Config
	board    Board
	observer recovery.Observer
	names    recovery.Names

	mu       sync.Mutex
	targets  map[recovery.Target]*target          // by upstream and model
	keys     *store.Cache[recovery.Target, *ramp] // with the key; only keys with a recent cool-down
	refusals *store.Cache[recovery.Target, *refusal]
	recent   [2]seen // the two clients that were seen last
	failing  series  // failures in a row, over all targets
	lastFail time.Time
}

// view is the set as one client sees it.
type view struct {
	*Set
	client string
}

var (
	_ recovery.Health = (*Set)(nil)
	_ recovery.Health = view{}
	_ recovery.Place  = (*target)(nil)
)

// maxTargets limits each map of targets, since clients may invent model names.
const maxTargets = 4096

// NewSet returns a set in which every target is available.
func NewSet(cfg Config, board Board, observer recovery.Observer) *Set {
	return &Set{cfg: cfg, board: board, observer: observer, targets: map[recovery.Target]*target{},
		keys: store.NewCache[recovery.Target, *ramp](maxTargets), refusals: store.NewCache[recovery.Target, *refusal](maxTargets)}
}

// Reconfigure applies new limits; what was counted stays.
func (s *Set) Reconfigure(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
}

// target holds the counts of one upstream and model. The set's lock guards it. It is not evicted while attempts are
// running.
type target struct {
	circuit  // of all clients; its state is on the board
	set      *Set
	field    string // its name on the board
	inFlight int
	resends  int
	clients  *store.Cache[string, *clientCircuit] // clients whose requests failed
	used     time.Time
}

func (s *Set) target(t recovery.Target) *target {
	t = t.Keyless()
	e, ok := s.targets[t]
	if !ok {
		if len(s.targets) >= maxTargets {
			s.evict()
		}
		e = &target{set: s, field: t.Upstream + "/" + t.Model, clients: store.NewCache[string, *clientCircuit](maxClientCircuits)}
		s.targets[t] = e
	}
	return e
}

// evict removes up to 16 targets without running attempts: each time the oldest one of a sample.
func (s *Set) evict() {
	for range 16 {
		var oldest recovery.Target
		var at time.Time
		seen := 0
		for t, e := range s.targets {
			if e.inFlight == 0 && (at.IsZero() || e.used.Before(at)) {
				oldest, at = t, e.used
			}
			if seen++; seen == 64 {
				break
			}
		}
		delete(s.targets, oldest)
	}
}

// Ready returns an error if all recent attempts at all upstreams failed, so that no request can be answered at present. A
// gateway without traffic is ready. Failures of only one of several clients do not count.
func (s *Set) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, now := &s.failing, time.Now()
	if b.n >= failingAfter && now.Sub(s.lastFail) < failingFor && (b.several || b.client == "" || s.onlyClient(b.client, now)) {
		return fmt.Errorf("the last %d attempts at all upstreams failed", b.n)
	}
	return nil
}

// After failingAfter failures in a row, the last one less than failingFor ago, Ready returns an error.
const (
	failingAfter = 20
	failingFor   = 30 * time.Second
)

// For implements recovery.Health.
func (s *Set) For(client string) recovery.Health { return view{s, client} }

// Check implements recovery.Health, for all clients together.
func (s *Set) Check(t recovery.Target) recovery.Status { return view{s, ""}.Check(t) }

// Check implements recovery.Health.
func (v view) Check(t recovery.Target) recovery.Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, now := v.target(t), time.Now()
	return v.status(t, e, v.circuitOf(e, v.client, now), v.opened(e, now), now)
}

// status returns the status of a target for the client with circuit p, which may be nil.
func (s *Set) status(t recovery.Target, e *target, p *clientCircuit, o opening, now time.Time) recovery.Status {
	if st := o.status(e.probes, now); st.Open {
		return st
	}
	if p != nil {
		if st := p.opening.status(p.probes, now); st.Open {
			return st
		}
	}
	if f, until := s.refused(t, now); f != nil {
		return recovery.Status{Refused: f, Until: until}
	}
	if until, ok := s.cooling(t, now); ok {
		return recovery.Status{Cooling: true, Until: until}
	}
	st := recovery.Status{Ready: true, Open: o.open || p != nil && p.open, Opened: e.opened}
	if p != nil && p.opened.After(st.Opened) {
		st.Opened = p.opened
	}
	return st
}

// status returns the status of a circuit in this state with this number of running probes; zero if it allows an attempt.
func (o opening) status(probes int, now time.Time) recovery.Status {
	switch {
	case !o.open:
	case now.Before(o.until):
		return recovery.Status{Open: true, Until: o.until}
	case probes > 0: // half-open: one probe at a time
		return recovery.Status{Open: true, Until: now.Add(250 * time.Millisecond)}
	}
	return recovery.Status{}
}

// Begin implements recovery.Health, for a client that is not distinguished from others.
func (s *Set) Begin(t recovery.Target, now time.Time, resend, force bool) (recovery.Ticket, recovery.Status) {
	return view{s, ""}.Begin(t, now, resend, force)
}

// Begin implements recovery.Health: it reserves a place for one attempt. The status is Ready if there was one.
func (v view) Begin(t recovery.Target, now time.Time, resend, force bool) (recovery.Ticket, recovery.Status) {
	s, client := v.Set, v.client
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sawClient(client, now)
	e := s.target(t)
	o, p := s.opened(e, now), s.circuitOf(e, client, now)
	ticket := recovery.Ticket{Place: e, Target: t, Client: client, Resend: resend}
	if !force {
		if st := s.status(t, e, p, o, now); !st.Ready {
			return ticket, st
		}
		if resend && e.resends >= max(s.cfg.ResendMin, int(s.cfg.ResendShare*float64(e.inFlight))) {
			return ticket, recovery.Status{Until: now.Add(100*time.Millisecond + rand.N(200*time.Millisecond))}
		}
	}
	if o.open {
		ticket.Probe = true
		e.probes++
		if !now.Before(o.until) {
			s.post(e, o, now.Add(probed))
		}
	}
	if p != nil && p.open {
		ticket.ClientProbe = true
		p.probes++
	}
	if resend {
		e.resends++
	}
	if k, ok := s.keys.Get(t); ok {
		k.started++
	}
	s.probing(t, now)
	e.inFlight++
	e.used = now
	return ticket, recovery.Status{Ready: true}
}

// Done implements recovery.Place.
func (e *target) Done(ticket recovery.Ticket, o recovery.Outcome) {
	s, now := e.set, o.At
	if now.IsZero() {
		now = time.Now()
	}
	var events []recovery.Event
	s.mu.Lock()
	e.inFlight = max(0, e.inFlight-1)
	if ticket.Resend {
		e.resends = max(0, e.resends-1)
	}
	if ticket.Probe {
		e.probes = max(0, e.probes-1)
	}
	if p, ok := e.clients.Get(ticket.Client); ok && ticket.ClientProbe {
		p.probes = max(0, p.probes-1)
	}
	counts := o.Failure != nil && o.Failure.Spec != nil && o.Failure.Spec.Counts
	switch {
	case counts:
		s.failing.add(ticket.Client)
		s.lastFail = now
	case o.Success:
		s.failing = series{}
	}
	if o.Success || o.Failure != nil {
		events = s.record(ticket, e, o, counts, now)
	}
	s.remember(ticket.Target, o, now)
	if cools(o.Failure) {
		events = s.cool(events, ticket.Target, o, now)
	}
	s.mu.Unlock()
	for i := range events {
		s.observer.Observe(events[i])
	}
}
