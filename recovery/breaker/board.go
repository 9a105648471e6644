package breaker

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// The boards that replicas share.
const (
	BoardCooldowns = "cooldowns" // field: target with key; value: class, begin and end; gone when the ramp after it ends
	BoardBreakers  = "breakers"  // field: target without key; value: end of the open period, its length, first opening, class
)

// Board is the shared state as this package needs it: reads are local and
// cheap, writes are visible here at once and elsewhere soon.
type Board interface {
	// Any reports whether a board has fields at all: usually nothing is wrong.
	Any(board string) bool
	Lookup(board, field string) (store.Field, bool)
	Post(board string, f store.Field, max bool)
	Remove(board, field string)
	Each(board string, fn func(store.Field) bool)
}

// cooldown reads the end of a target's cool-down from the board, where it stays until the
// ramp after it is over.
func (s *Set) cooldown(t recovery.Target) (next ramp, ok bool) {
	if !s.board.Any(BoardCooldowns) {
		return ramp{}, false
	}
	f, ok := s.board.Lookup(BoardCooldowns, s.names.Of(t))
	if !ok {
		return ramp{}, false
	}
	_, begin, until := coolingOf(f)
	return ramp{until: until, step: rampStep(until.Sub(begin))}, true
}

// coolingOf reads a cool-down's field: its class, and its begin and end, as far as they are
// ours.
func coolingOf(f store.Field) (class string, begin, until time.Time) {
	until = f.Until
	parts := strings.Fields(string(f.Value))
	if len(parts) > 0 && isClass(parts[0]) {
		class = parts[0]
	}
	if len(parts) > 1 {
		if ms, err := strconv.ParseInt(parts[1], 10, 64); err == nil && 0 < ms && ms < f.Until.UnixMilli() {
			begin = time.UnixMilli(ms)
		}
	}
	if len(parts) > 2 {
		if ms, err := strconv.ParseInt(parts[2], 10, 64); err == nil && 0 < ms && ms < f.Until.UnixMilli() {
			until = time.UnixMilli(ms)
		}
	}
	return class, begin, until
}

// skew is how far replicas' clocks may be apart; a cool-down that ends later
// than that after the longest one is nobody's.
const skew = time.Minute

// opening is the state of a target's breaker: closed as zero, half-open where
// until has passed.
type opening struct {
	open   bool
	until  time.Time
	length time.Duration
	since  time.Time // when it was opened first; failed probes prolong it
	class  string    // of the failure that opened it; may be empty
}

// opened reads the breaker's state from the board.
func (s *Set) opened(e *target, now time.Time) opening {
	if !s.board.Any(BoardBreakers) {
		return opening{}
	}
	f, ok := s.board.Lookup(BoardBreakers, e.field)
	if !ok {
		return opening{}
	}
	return s.openingOf(f, now)
}

// openingOf reads the field of a breaker.
func (s *Set) openingOf(f store.Field, now time.Time) opening {
	parts := strings.Fields(string(f.Value))
	if len(parts) < 2 {
		return opening{}
	}
	ms, err1 := strconv.ParseInt(parts[0], 10, 64)
	n, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil || n < 0 {
		return opening{} // not ours: a closed breaker does no harm
	}
	until, length := time.UnixMilli(ms), time.Duration(n)*time.Millisecond
	since, class := until.Add(-length), ""
	if len(parts) > 2 {
		if first, err := strconv.ParseInt(parts[2], 10, 64); err == nil && 0 < first && first <= ms {
			since = time.UnixMilli(first)
		}
	}
	if len(parts) > 3 && isClass(parts[3]) {
		class = parts[3]
	}
	// A clock that is off, or a hostile value, must not close a target for long:
	// what no replica would have posted is half-open now. To cap it instead would
	// push its end away with every look.
	if until.After(now.Add(2 * s.cfg.OpenMax)) {
		until = now
	}
	return opening{true, until, min(length, s.cfg.OpenMax), since, class}
}

// prolonged returns the state of a circuit that a failure opens for a while, or keeps open.
func (o opening) prolonged(f *recovery.Failure, now time.Time, length time.Duration) opening {
	next := opening{true, now.Add(length), length, now, ""}
	if f != nil {
		next.class = string(f.Class())
	}
	if o.open {
		next.since, next.class = o.since, cmp.Or(o.class, next.class)
	}
	return next
}

// open opens a breaker for a while, or keeps it open.
func (s *Set) open(e *target, o opening, now time.Time) {
	e.good = 0
	// Past the open period it is half-open; without traffic it closes by itself.
	stays := o.until.Add(2 * s.cfg.OpenMax)
	if e.probes > 0 {
		stays = now.Add(probed)
	}
	s.post(e, o, stays)
}

// probed is how long a breaker stays half-open for a probe: such a one is waited for until it answers.
const probed = 5 * time.Minute

// post writes the state of a breaker to the board, where it stays until then.
func (s *Set) post(e *target, o opening, until time.Time) {
	s.board.Post(BoardBreakers, store.Field{
		Name:  e.field,
		Value: fmt.Appendf(nil, "%d %d %d %s", o.until.UnixMilli(), o.length.Milliseconds(), o.since.UnixMilli(), o.class),
		Until: until,
	}, false)
}

// cools reports whether a failure is a reason not to ask its target for a while:
// its class is, or the target is in trouble and says when to come back.
func cools(f *recovery.Failure) bool {
	return f != nil && f.Spec != nil && (f.Spec.Cools || f.Spec.Counts && f.Signal.RetryAfter > 0)
}

// cool starts a cool-down. The client's own credential cools only for what
// passes by itself: it may be topped up or replaced at any moment.
func (s *Set) cool(t recovery.Target, o recovery.Outcome, now time.Time) (recovery.Event, bool) {
	f := o.Failure
	d := s.cfg.Cooldown
	if f.Signal.HasRetryAfter {
		d = f.Signal.RetryAfter
	} else if f.Class() != recovery.RateLimit {
		d = credentialCooldown
	}
	if o.Client && f.Scope() == recovery.ScopeCredential && f.Class() != recovery.RateLimit {
		return recovery.Event{}, false
	}
	if d = min(d, s.cfg.CooldownMax); d <= 0 {
		return recovery.Event{}, false
	}
	until := now.Add(d)
	s.board.Post(BoardCooldowns, store.Field{
		Name: s.names.Of(t), Value: fmt.Appendf(nil, "%s %d %d", f.Class(), now.UnixMilli(), until.UnixMilli()), Until: until.Add(rampSteps * rampStep(d)),
	}, true)
	s.cooled(t, ramp{until: until, step: rampStep(d)}, now)
	return recovery.Event{Name: recovery.EventTargetCooled, Time: now, Target: t, Class: f.Class(), Until: until, Wait: d}, true
}

// credentialCooldown is how long a key of the gateway's own rests that was
// refused or is out of quota: long enough to ask it rarely, short enough that
// a repaired one comes back by itself.
const credentialCooldown = 5 * time.Minute

// Marks lists the open breakers and the cool-downs on the board.
func (s *Set) Marks() (marks []recovery.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.board.Each(BoardBreakers, func(f store.Field) bool {
		if o := s.openingOf(f, now); o.open {
			marks = append(marks, recovery.Mark{Target: f.Name, Kind: recovery.MarkBreaker, Item: string(recovery.MarkBreaker),
				Detail: "probed every " + o.length.String(), Evidence: o.class, Since: o.since, Until: o.until})
		}
		return true
	})
	for t, e := range s.targets {
		for client, p := range e.clients {
			if p.open && now.Before(p.until.Add(2*s.cfg.OpenMax)) {
				marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkClient, Item: string(recovery.MarkBreaker),
					Detail: "probed every " + p.length.String(), Evidence: strings.TrimSpace(p.class + " for " + client + " alone"), Since: p.since, Until: p.until})
			}
		}
	}
	s.board.Each(BoardCooldowns, func(f store.Field) bool {
		class, begin, until := coolingOf(f)
		if !time.Now().Before(until) {
			return true
		}
		m := recovery.Mark{Target: f.Name, Kind: recovery.MarkCooldown, Item: string(recovery.MarkCooldown), Evidence: class, Since: begin, Until: until}
		marks = append(marks, m)
		return true
	})
	return marks
}

// longestClass bounds the name of a class, in bytes.
const longestClass = 40

// isClass reports whether a word on the board may be the name of a class.
func isClass(word string) bool {
	return len(word) <= longestClass && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// Open lists the targets whose breakers are open or half-open, without their keys. Breakers that are
// open for one client alone are left out. Safe for concurrent use.
func (s *Set) Open() (open []recovery.Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.board.Each(BoardBreakers, func(f store.Field) bool {
		if s.openingOf(f, now).open {
			upstream, model, _ := strings.Cut(f.Name, "/")
			open = append(open, recovery.Target{Upstream: upstream, Model: model})
		}
		return true
	})
	return open
}

// Clear lets a target, as a Mark names it, be asked again: its breaker, its cool-down,
// or both where item is empty. What was counted of it is forgotten with the breaker.
func (s *Set) Clear(name, item string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if item == "" || item == string(recovery.MarkBreaker) {
		s.board.Remove(BoardBreakers, name)
		for t, e := range s.targets {
			if t.String() == name {
				e.forget()
				e.clients = nil
			}
		}
	}
	if item == "" || item == string(recovery.MarkCooldown) {
		s.board.Remove(BoardCooldowns, name)
		for t := range s.refusals {
			if t.String() == name {
				delete(s.refusals, t)
			}
		}
		for t := range s.keys {
			if t.String() == name {
				delete(s.keys, t)
			}
		}
	}
}
