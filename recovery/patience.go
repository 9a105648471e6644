package recovery

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

// Failures that cost nothing are bounded in time and not in number: an outage
// lasts as long as it lasts, and asking a provider that turns requests away is
// free. All others count as [Config.Attempts].

// StrategyKnown is the engine's own: the answer of a target that said a moment ago that the
// quota of this credential is used up.
const StrategyKnown = "known"

// quickError is up to when a 500 costs nothing: the provider failed before a
// model worked on the request.
const quickError = 2 * time.Second

// maxFree bounds the attempts of one request, in units of those that may cost.
const maxFree = 4

// costsNothing reports whether a failed attempt took nothing but its time: the
// request was not sent, or turned away before anybody worked on it.
func (f *Failure) costsNothing(took time.Duration) bool {
	if f.Released > ReleasedNothing || f.Flaw != nil || f.Scope() != ScopeTarget && f.Class() != RateLimit {
		return false
	}
	switch f.Signal.Status {
	case 429, 502, 503, 529:
		return true
	case 500:
		return took <= quickError
	}
	return f.Signal.Phase == PhaseConnect
}

// count books a failed attempt: whether it cost anything, and whether its target
// says the same again.
func (r *run) count(f *Failure, c *Choice) {
	x := r.x
	took := x.Attempts[f.Attempt-1].Duration
	if f.Free = r.Config.Patience > 0 && f.costsNothing(took); f.Free {
		x.free++
		x.idle += took
	}
	c.Excluded = c.Excluded || f.Stranger && c.Tries >= maxStranger
	if f.Signal.Status != 500 || f.Edited {
		c.same = 0
		return
	}
	if said := withoutNumbers(f.Signal.Message); said != c.said || c.same == 0 {
		c.said, c.same = said, 0
	}
	c.same++
	f.Repeated = !r.common.widespread(c.Target, c.said, x.Body.Raw(), time.Now()) && c.same >= maxSame
	c.Excluded = c.Excluded || f.Repeated
}

// maxSame is after how many equal answers to equal bytes a 500 is believed to
// be about the request.
const maxSame = 3

// maxStranger is how often a host is asked that never answered anybody.
const maxStranger = 2

// withoutNumbers leaves out the words that differ between answers that say the
// same: ids, times, counts.
func withoutNumbers(s string) string {
	words := strings.Fields(s)
	kept := words[:0]
	for _, w := range words {
		if !strings.ContainsAny(w, "0123456789") {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// exhausted reports whether no further attempt may be made, whatever the failure. What
// continues an answer is bounded by what it costs, see [Config.CutInput].
func (r *run) exhausted(continues bool) bool {
	n, charged, most := len(r.x.Attempts), r.x.Charged(), r.Config.Attempts
	if continues {
		n, charged = n-r.x.extra, charged-r.x.extra
	}
	return charged >= most || n > maxFree*(most-1)
}

// idleLeft is how much longer failures that cost nothing may be waited out.
func (r *run) idleLeft() time.Duration {
	most := r.Config.Patience
	if r.x.Patience > 0 {
		most = min(most, r.x.Patience/2) // what is left is for the answer
	}
	return most - r.x.idle
}

// inTime shortens the wait of an action to the time that is left for failures which
// cost nothing; false where none is. What an upstream asks for is not counted in it.
func (r *run) inTime(a *Action, f *Failure) bool {
	if !f.Free || a.Stated || a.Wait == 0 {
		return true
	}
	left := r.idleLeft()
	a.Wait = min(a.Wait, left)
	return left >= r.Config.BackoffMin/2
}

// crowdPatience is how long a resend waits for one of the few places of resends.
func (r *run) crowdPatience() time.Duration {
	if r.prev != nil && r.prev.Free {
		return r.idleLeft()
	}
	return r.Config.BackoffMax
}

// commonErrors remembers which targets gave the same 500 to different requests a moment ago,
// and answered others: they fail now and then, whatever one request is told again and again.
// Safe for concurrent use.
type commonErrors struct {
	mu   sync.Mutex
	seed maphash.Seed
	last map[Target]commonError // nil until there is one
}

type commonError struct {
	said string
	body uint64 // of the first request that was told so
	many bool   // others were told the same
	well bool   // others were answered
	at   time.Time
}

const (
	commonTime = time.Minute
	maxCommon  = 256
)

// widespread books that a target said this to a request with that body, and reports
// whether it says so to others now and then.
func (e *commonErrors) widespread(t Target, said string, raw []byte, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil {
		e.seed, e.last = maphash.MakeSeed(), map[Target]commonError{}
	}
	body := maphash.Bytes(e.seed, raw)
	c, ok := e.last[t]
	if !ok && len(e.last) >= maxCommon {
		clear(e.last)
	}
	if c.said != said || now.Sub(c.at) > commonTime {
		c = commonError{said: said, body: body}
	}
	c.at, c.many = now, c.many || c.body != body
	e.last[t] = c
	return c.many && c.well
}

// answered books an answer of a target.
func (e *commonErrors) answered(t Target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.last[t]; ok && !c.well {
		c.well = true
		e.last[t] = c
	}
}
