package breaker

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// circuit counts attempts at a target and decides whether too many of them failed. The set's lock guards it.
type circuit struct {
	probes int // running probes
	good   int // successful probes since the circuit opened
	streak int // failures without a success between them
	total  [slots]int
	failed [slots]int
	slot   int64     // number of the newest slot
	opened time.Time // when the circuit last opened; zero once probes have succeeded
}

// clientCircuit is the circuit of one client, for failures that only its requests cause.
type clientCircuit struct {
	circuit
	opening
}

// slots is the number of slots of the sliding window.
const slots = 10

// advance moves the window to now.
func (c *circuit) advance(now time.Time, window time.Duration) {
	n := now.UnixNano() / int64(max(window/slots, time.Millisecond))
	for i := max(c.slot+1, n-slots+1); i <= n; i++ {
		c.total[i%slots], c.failed[i%slots] = 0, 0
	}
	c.slot = max(c.slot, n)
}

// count adds one outcome to the window.
func (c *circuit) count(now time.Time, window time.Duration, failed, success bool) {
	c.advance(now, window)
	c.total[c.slot%slots]++
	switch {
	case failed:
		c.failed[c.slot%slots]++
		c.streak++
	case success:
		c.streak = 0
	}
}

// sum returns the totals of the window; the caller advances it first if needed.
func (c *circuit) sum() (total, failed int) {
	for i := range slots {
		total += c.total[i]
		failed += c.failed[i]
	}
	return total, failed
}

// forget clears all counts except the running probes.
func (c *circuit) forget() { *c = circuit{probes: c.probes, slot: c.slot} }

// judge returns how long a circuit in state o is to be open after a counted outcome, or whether it closes; 0 and false
// change nothing.
func (c *circuit) judge(cfg *Config, o opening, probe, failed bool, now time.Time) (open time.Duration, closes bool) {
	switch {
	case o.open && now.Before(o.until):
		return 0, false // the attempt began before the circuit opened
	case o.open && failed:
		return min(max(2*o.length, cfg.Open), cfg.OpenMax), false
	case o.open && probe:
		c.good++
		return 0, c.good >= cfg.Successes
	case o.open || !failed:
		return 0, false
	}
	total, bad := c.sum()
	// MinRequests failures in a row suffice, whatever the share of failures.
	if total >= cfg.MinRequests && (float64(bad) >= cfg.FailureShare*float64(total) || c.streak >= cfg.MinRequests) {
		return cfg.Open, false
	}
	return 0, false
}

// record counts the outcome of an attempt, and opens, reopens or closes the circuits that it concerns: that of all clients
// or, if no other client's requests failed, that of its own client. It returns the events to send.
func (s *Set) record(ticket recovery.Ticket, e *target, o recovery.Outcome, failed bool, now time.Time) (events []recovery.Event) {
	e.count(now, s.cfg.Window, failed, o.Success)
	p := s.circuitAfter(e, ticket.Client, failed, now)
	if p != nil {
		p.count(now, s.cfg.Window, failed, o.Success)
	}
	state := s.opened(e, now)
	length, closes := e.judge(&s.cfg, state, ticket.Probe, failed, now)
	if o.Dead && !state.open {
		length, closes = s.cfg.Open, false
	}
	shared := length > 0 && (o.Several || s.shared(e, ticket.Client, now))
	switch {
	case shared:
		next := state.prolonged(o.Failure, now, length)
		s.open(e, next, now)
		if !state.open { // a failed probe causes no event
			e.opened = now
			events = changed(events, recovery.EventBreakerOpened, now, ticket.Target, "", next)
		}
	case closes:
		e.forget()
		s.board.Remove(BoardBreakers, e.field)
		events = changed(events, recovery.EventBreakerClosed, now, ticket.Target, "", opening{})
	}
	if p == nil {
		return events
	}
	if length == 0 || shared || p.open { // else what would open the circuit of all clients opens this client's
		length, closes = p.judge(&s.cfg, p.opening, ticket.ClientProbe, failed, now)
	}
	switch {
	case length > 0:
		first := !p.open
		p.good, p.opening = 0, p.prolonged(o.Failure, now, length)
		if first {
			p.opened = now
			events = changed(events, recovery.EventBreakerOpened, now, ticket.Target, ticket.Client, p.opening)
		}
	case closes:
		p.forget()
		p.opening = opening{}
		events = changed(events, recovery.EventBreakerClosed, now, ticket.Target, ticket.Client, opening{})
	}
	return events
}

// changed appends the event of a circuit that opened or closed. client is empty for the circuit of all clients.
func changed(events []recovery.Event, name recovery.EventName, now time.Time, t recovery.Target, client string, o opening) []recovery.Event {
	return append(events, recovery.Event{Name: name, Time: now, Target: t.Keyless(), Origin: recovery.Origin{Key: client}, Class: recovery.Class(o.class), Until: o.until})
}

// circuitOf returns the circuit of a client, nil if it has none. It closes a circuit that had no traffic for a while.
func (s *Set) circuitOf(e *target, client string, now time.Time) *clientCircuit {
	p, _ := e.clients.Get(client)
	if p != nil && p.open && now.After(p.until.Add(2*s.cfg.OpenMax)) {
		p.opening = opening{}
	}
	return p
}

// maxClientCircuits limits the clients of one target whose failures are counted separately.
const maxClientCircuits = 64

// circuitAfter returns the circuit of a client after an attempt, and creates it after a failure. It returns nil if none of
// the client's requests failed, or if there is no other client.
func (s *Set) circuitAfter(e *target, client string, failed bool, now time.Time) *clientCircuit {
	p, ok := e.clients.Get(client)
	if ok || !failed || client == "" || s.onlyClient(client, now) {
		return p
	}
	p = &clientCircuit{}
	e.clients.Put(client, p, 1)
	return p
}

// shared reports whether the failures of one client's requests concern all clients: another client's requests failed
// within the window, too, or there is no other client.
func (s *Set) shared(e *target, client string, now time.Time) bool {
	if client == "" || s.onlyClient(client, now) {
		return true
	}
	others := 0
	e.clients.Each(func(name string, p *clientCircuit) bool {
		p.advance(now, s.cfg.Window)
		if _, failed := p.sum(); name != client {
			others += failed
		}
		return true
	})
	return others > 0
}

// seen is when a client last made an attempt.
type seen struct {
	client string
	at     time.Time
}

// aloneFor is the time without an attempt of another client after which a client counts as the only one, if the
// configuration does not list the clients.
const aloneFor = time.Hour

// sawClient records a client's attempt.
func (s *Set) sawClient(client string, now time.Time) {
	if client == "" {
		return
	}
	if s.recent[0].client != client {
		s.recent[1], s.recent[0].client = s.recent[0], client
	}
	s.recent[0].at = now
}

// onlyClient reports whether a client is the only one.
func (s *Set) onlyClient(client string, now time.Time) bool {
	if s.cfg.Clients > 0 {
		return s.cfg.Clients == 1
	}
	for _, r := range s.recent {
		if r.client != "" && r.client != client && now.Sub(r.at) < aloneFor {
			return false
		}
	}
	return true
}

// series counts failures in a row, and records whether several clients had them.
type series struct {
	n       int
	client  string
	several bool
}

func (r *series) add(client string) {
	if r.n == 0 {
		r.client = client
	}
	r.several = r.several || client != r.client
	r.n++
}
