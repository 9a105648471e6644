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
	BoardCooldowns = "cooldowns" // field: target with key; value: class, begin and end; expires with the ramp after it
	BoardBreakers  = "breakers"  // field: target without key; value: end of the open period, its length, first opening, class
)

// Board is the part of the shared state that this package needs. Reads are local and cheap. Writes are visible at once in
// this process and soon on other replicas.
type Board interface {
	// Any reports whether a board has any fields. Usually it has none.
	Any(board string) bool
	Lookup(board, field string) (store.Field, bool)
	Post(board string, f store.Field, max bool)
	Remove(board, field string)
	Each(board string, fn func(store.Field) bool)
}

// coolingOf parses the field of a cool-down. Invalid values are ignored: the class is then empty, begin is zero, and until
// is the field's expiry.
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

// skew limits the difference of the replicas' clocks. A cool-down that ends later than the longest possible one plus skew
// is invalid.
const skew = time.Minute

// opening is the state of a breaker. The zero value is closed; after until it is half-open.
type opening struct {
	open   bool
	until  time.Time
	length time.Duration
	since  time.Time // when the breaker first opened; failed probes do not change it
	class  string    // of the failure that opened it; may be empty
}

// opened reads the state of a target's breaker from the board.
func (s *Set) opened(e *target, now time.Time) opening {
	f, ok := s.board.Lookup(BoardBreakers, e.field)
	if !ok {
		return opening{}
	}
	return s.openingOf(f, now)
}

// openingOf parses the field of a breaker; an invalid one counts as closed.
func (s *Set) openingOf(f store.Field, now time.Time) opening {
	parts := strings.Fields(string(f.Value))
	if len(parts) < 2 {
		return opening{}
	}
	ms, err1 := strconv.ParseInt(parts[0], 10, 64)
	n, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil || n < 0 {
		return opening{} // invalid: a closed breaker does no harm
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
	// A wrong clock or a hostile value must not block a target for long: a breaker with an end that no replica would post
	// is half-open now. A maximum would not help, since it would move the end with every read.
	if until.After(now.Add(2 * s.cfg.OpenMax)) {
		until = now
	}
	return opening{true, until, min(length, s.cfg.OpenMax), since, class}
}

// prolonged returns the state of a breaker after a failure has opened it, or kept it open, for length.
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

// open opens a target's breaker, or keeps it open, in state o.
func (s *Set) open(e *target, o opening, now time.Time) {
	e.good = 0
	// After the open period the breaker is half-open. Without traffic it closes when the field expires.
	stays := o.until.Add(2 * s.cfg.OpenMax)
	if probing := now.Add(probed); e.probes > 0 && probing.After(stays) {
		stays = probing
	}
	s.post(e, o, stays)
}

// probed is how long a breaker stays half-open while a probe is running.
const probed = 5 * time.Minute

// post writes the state of a breaker to the board; the field expires at until.
func (s *Set) post(e *target, o opening, until time.Time) {
	s.board.Post(BoardBreakers, store.Field{
		Name:  e.field,
		Value: fmt.Appendf(nil, "%d %d %d %s", o.until.UnixMilli(), o.length.Milliseconds(), o.since.UnixMilli(), o.class),
		Until: until,
	}, false)
}

// cools reports whether a failure starts a cool-down: because of its class, or because the target fails and states when
// to retry.
func cools(f *recovery.Failure) bool {
	return f != nil && f.Spec != nil && !f.Facts.Affordable() && (f.Spec.Cools || f.Spec.Counts && f.Signal.RetryAfter > 0)
}

// cool starts a cool-down, if there is one, and appends its event. The client's own credential cools down only after failures that
// pass without its owner, such as rate limits: the owner may add credit or replace it at any time.
func (s *Set) cool(events []recovery.Event, t recovery.Target, o recovery.Outcome, now time.Time) []recovery.Event {
	f := o.Failure
	d := s.cfg.Cooldown
	if f.Signal.HasRetryAfter {
		d = f.Signal.RetryAfter
	} else if f.Class() != recovery.RateLimit {
		d = credentialCooldown
	}
	if o.Client && f.Scope() == recovery.ScopeCredential && f.Class() != recovery.RateLimit {
		return events
	}
	if d = min(d, s.cfg.CooldownMax); d <= 0 {
		return events
	}
	until := now.Add(d)
	s.board.Post(BoardCooldowns, store.Field{
		Name: s.names.Of(t), Value: fmt.Appendf(nil, "%s %d %d", f.Class(), now.UnixMilli(), until.UnixMilli()), Until: until.Add(rampSteps * rampStep(d)),
	}, true)
	return append(events, recovery.Event{Name: recovery.EventTargetCooled, Time: now, Target: t, Class: f.Class(), Until: until, Wait: d})
}

// credentialCooldown is the cool-down of a gateway's key that was refused or whose quota is used up: long enough to try it
// rarely, short enough that a repaired key is soon used again.
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
		e.clients.Each(func(client string, p *clientCircuit) bool {
			if p.open && now.Before(p.until.Add(2*s.cfg.OpenMax)) {
				marks = append(marks, recovery.Mark{Target: t.String(), Kind: recovery.MarkClient, Item: string(recovery.MarkBreaker),
					Detail: "probed every " + p.length.String(), Evidence: strings.TrimSpace(p.class + " for " + client + " alone"), Since: p.since, Until: p.until})
			}
			return true
		})
	}
	s.board.Each(BoardCooldowns, func(f store.Field) bool {
		class, begin, until := coolingOf(f)
		if !time.Now().Before(until) {
			return true
		}
		marks = append(marks, recovery.Mark{Target: f.Name, Kind: recovery.MarkCooldown, Item: string(recovery.MarkCooldown), Evidence: class, Since: begin, Until: until})
		return true
	})
	return marks
}

// longestClass limits the name of a class, in bytes.
const longestClass = 40

// isClass reports whether a word on the board may be the name of a class.
func isClass(word string) bool {
	return len(word) <= longestClass && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// Open returns the targets whose breakers are open or half-open, without their keys. It leaves out breakers that are open
// for one client only. Safe for concurrent use.
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

// Clear removes a target's breaker with its counts, its cool-down, or both if item is empty. name and item are those of a
// recovery.Mark.
func (s *Set) Clear(name, item string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if item == "" || item == string(recovery.MarkBreaker) {
		s.board.Remove(BoardBreakers, name)
		for t, e := range s.targets {
			if t.String() == name {
				e.forget()
				e.clients.DeleteFunc(func(string, *clientCircuit) bool { return true })
			}
		}
	}
	if item == "" || item == string(recovery.MarkCooldown) {
		s.board.Remove(BoardCooldowns, name)
		s.refusals.DeleteFunc(func(t recovery.Target, _ *refusal) bool { return t.String() == name })
	}
}
