package breaker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Set holds the breakers of all targets. Safe for concurrent use.
type Set struct {
	cfg      Config
	board    Board
	observer recovery.Observer

	names recovery.Names

	barren   atomic.Int64 // failures in a row, over all targets
	lastFail atomic.Int64 // unix nanoseconds

	mu      sync.Mutex
	targets map[recovery.Target]*target // by upstream and model
	keys    map[recovery.Target]*key    // with the key; only those that cooled down lately
}

var (
	_ recovery.Health = (*Set)(nil)
	_ recovery.Place  = (*target)(nil)
)

// maxTargets bounds both maps: clients may invent model names.
const maxTargets = 4096

// NewSet returns a set in which every target may be asked.
func NewSet(cfg Config, board Board, observer recovery.Observer) *Set {
	return &Set{cfg: cfg, board: board, observer: observer,
		targets: map[recovery.Target]*target{}, keys: map[recovery.Target]*key{}}
}

// Reconfigure applies new limits; what was counted stays.
func (s *Set) Reconfigure(cfg Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg = cfg
}

// slots divide the window.
const slots = 10

// target counts for one upstream and model. The set's lock guards it; while
// anything is under way to it, it is not evicted.
type target struct {
	set      *Set
	field    string // its name on the board
	inFlight int
	resends  int
	probes   int
	good     int // successful probes since it was opened
	streak   int // failures without a success between them
	total    [slots]int
	failed   [slots]int
	slot     int64 // number of the newest slot
	used     time.Time
}

// key ramps one credential up again after a cool-down.
type key struct {
	until    time.Time // end of the newest cool-down seen
	inFlight int
	allowed  int // in flight at a time, doubling with each success
	used     time.Time
}

// rampDone ends a ramp: from here on the key is as any other.
const rampDone = 64

func (s *Set) target(t recovery.Target) *target {
	t.Key = ""
	e, ok := s.targets[t]
	if !ok {
		if len(s.targets) >= maxTargets {
			s.evict()
		}
		e = &target{set: s, field: t.Upstream + "/" + t.Model}
		s.targets[t] = e
	}
	return e
}

// evict makes room by dropping targets that nothing is under way to. The
// oldest of a sample goes first.
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

// Ready tells why no request can be answered at present: all that were asked
// lately failed. nil is the usual state; a quiet gateway is ready.
func (s *Set) Ready() error {
	if n := s.barren.Load(); n >= barrenAfter && time.Since(time.Unix(0, s.lastFail.Load())) < barrenFor {
		return fmt.Errorf("the last %d attempts at all upstreams failed", n)
	}
	return nil
}

// barrenAfter failures in a row, the last within barrenFor, mean that nothing works.
const (
	barrenAfter = 20
	barrenFor   = 30 * time.Second
)

// Check reports whether t may be asked now.
func (s *Set) Check(t recovery.Target) recovery.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, now := s.target(t), time.Now()
	return s.status(t, e, s.opened(e, now), now)
}

func (s *Set) status(t recovery.Target, e *target, o opening, now time.Time) recovery.Status {
	if o.open {
		if now.Before(o.until) {
			return recovery.Status{Open: true, Until: o.until}
		}
		if e.probes > 0 { // half-open: one probe at a time
			return recovery.Status{Open: true, Until: now.Add(250 * time.Millisecond)}
		}
	}
	if f, ok := s.cooldown(t); ok && now.Before(f.Until) && f.Until.Before(now.Add(s.cfg.CooldownMax+skew)) {
		s.cooled(t, f.Until, now)
		return recovery.Status{Cooling: true, Until: f.Until}
	}
	if k, ok := s.keys[t]; ok && k.inFlight >= k.allowed {
		// Ramping up: those that wait look again soon, not all at once.
		return recovery.Status{Cooling: true, Until: now.Add(50*time.Millisecond + rand.N(100*time.Millisecond))}
	}
	return recovery.Status{Ready: true, Open: o.open}
}

// cooled remembers a cool-down, so that its end is a ramp.
func (s *Set) cooled(t recovery.Target, until, now time.Time) {
	k, ok := s.keys[t]
	if !ok {
		if len(s.keys) >= maxTargets {
			for o, e := range s.keys {
				if e.inFlight == 0 {
					delete(s.keys, o)
					break
				}
			}
		}
		k = &key{}
		s.keys[t] = k
	}
	k.used = now
	if until.After(k.until) {
		k.until, k.allowed = until, 1
	}
}

// Begin takes a place for one attempt; Ready tells whether there was one.
func (s *Set) Begin(t recovery.Target, now time.Time, resend, force bool) (recovery.Ticket, recovery.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.target(t)
	o := s.opened(e, now)
	ticket := recovery.Ticket{Place: e, Target: t, Resend: resend}
	if !force {
		if st := s.status(t, e, o, now); !st.Ready {
			return ticket, st
		}
		if resend && e.resends >= max(s.cfg.ResendMin, int(s.cfg.ResendShare*float64(e.inFlight))) {
			return ticket, recovery.Status{Until: now.Add(100*time.Millisecond + rand.N(200*time.Millisecond))}
		}
	}
	if o.open {
		ticket.Probe = true
		e.probes++
	}
	if resend {
		e.resends++
	}
	if k, ok := s.keys[t]; ok {
		ticket.Ramp = true
		k.inFlight++
	}
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
	if ticket.Ramp {
		s.ramp(ticket.Target, o.Success)
	}
	counts := o.Failure != nil && o.Failure.Spec != nil && o.Failure.Spec.Counts
	switch {
	case counts:
		s.barren.Add(1)
		s.lastFail.Store(now.UnixNano())
	case o.Success:
		s.barren.Store(0)
	}
	if o.Success || o.Failure != nil {
		e.count(now, s.cfg.Window, counts)
		switch {
		case counts:
			e.streak++
		case o.Success:
			e.streak = 0
		}
		if ev, ok := s.judge(ticket, e, now, counts); ok {
			events = append(events, ev)
		}
	}
	if cools(o.Failure) {
		if ev, ok := s.cool(ticket.Target, o, now); ok {
			events = append(events, ev)
		}
	}
	s.mu.Unlock()
	for _, ev := range events {
		s.observer.Observe(ev)
	}
}

// ramp books an attempt of a key that cooled down lately.
func (s *Set) ramp(t recovery.Target, success bool) {
	k, ok := s.keys[t]
	if !ok {
		return
	}
	k.inFlight = max(0, k.inFlight-1)
	if success {
		if k.allowed *= 2; k.allowed >= rampDone {
			delete(s.keys, t)
		}
	}
}

// count books one outcome in the window.
func (e *target) count(now time.Time, window time.Duration, failed bool) {
	n := now.UnixNano() / int64(max(window/slots, time.Millisecond))
	for i := max(e.slot+1, n-slots+1); i <= n; i++ {
		e.total[i%slots], e.failed[i%slots] = 0, 0
	}
	e.slot = max(e.slot, n)
	e.total[e.slot%slots]++
	if failed {
		e.failed[e.slot%slots]++
	}
}

// judge opens, reopens or closes the breaker.
func (s *Set) judge(ticket recovery.Ticket, e *target, now time.Time, failed bool) (recovery.Event, bool) {
	o := s.opened(e, now)
	switch {
	case o.open && now.Before(o.until):
		return recovery.Event{}, false // late outcomes of before
	case o.open && failed:
		return s.open(ticket, e, now, min(max(2*o.length, s.cfg.Open), s.cfg.OpenMax)), true
	case o.open && ticket.Probe:
		if e.good++; e.good < s.cfg.Successes {
			return recovery.Event{}, false
		}
		e.total, e.failed, e.good = [slots]int{}, [slots]int{}, 0
		s.board.Remove(BoardBreakers, e.field)
		return recovery.Event{Name: recovery.EventBreakerClosed, Time: now, Target: bare(ticket.Target)}, true
	case o.open:
		return recovery.Event{}, false
	}
	if !failed {
		return recovery.Event{}, false
	}
	total, bad := 0, 0
	for i := range slots {
		total += e.total[i]
		bad += e.failed[i]
	}
	// So many failures in a row say enough, however much went well before them.
	if total >= s.cfg.MinRequests && (float64(bad) >= s.cfg.FailureShare*float64(total) || e.streak >= s.cfg.MinRequests) {
		return s.open(ticket, e, now, s.cfg.Open), true
	}
	return recovery.Event{}, false
}

func bare(t recovery.Target) recovery.Target { t.Key = ""; return t }
