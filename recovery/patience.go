package recovery

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

// Failures that cost nothing are limited in time, not in number: an outage may last long, and a request that a provider
// rejects is free. All others count towards [Config.Attempts].

// quickError is the duration up to which a 500 counts as free: the provider failed before a model worked on the
// request.
const quickError = 2 * time.Second

// maxFree limits all retries of one request, as a multiple of the retries that may cost something.
const maxFree = 4

// costsNothing reports whether a failed attempt cost only time: the request was not sent, or the provider rejected it
// before a model worked on it.
func (f *Failure) costsNothing(took time.Duration) bool {
	if f.Released > ReleasedNothing || f.Flaw != nil || f.Scope() != ScopeTarget && f.Class() != RateLimit {
		return false
	}
	switch f.Signal.Status {
	case 429, 502, 503, 529, 521, 522, 523, 530: // the last four: Cloudflare did not reach the provider
		return true
	case 500:
		return took <= quickError
	}
	return f.Signal.Phase == PhaseConnect
}

// count records whether a failed attempt cost anything, and whether its target repeats
// the same error.
func (r *run) count(f *Failure, c *Choice) {
	x := r.x
	took := x.Attempts[f.Attempt-1].Duration
	if f.Free = r.Config.Patience > 0 && f.costsNothing(took); f.Free {
		x.free++
		x.idle += took
	}
	c.Excluded = c.Excluded || f.NeverAnswered && c.Tries >= maxNeverAnswered
	if f.Signal.Status != 500 || f.Edited {
		c.equal500s = 0
		return
	}
	if said := withoutNumbers(f.Signal.Message); said != c.message500 || c.equal500s == 0 {
		c.message500, c.equal500s = said, 0
	}
	c.equal500s++
	f.Repeated = !r.common.widespread(c.Target, c.message500, x.Body.Raw(), time.Now()) && c.equal500s >= maxSame
	c.Excluded = c.Excluded || f.Repeated
}

// maxSame is the number of equal 500s for equal bytes after which the request itself counts as the cause.
const maxSame = 3

// maxNeverAnswered limits the attempts at a host that has never answered anything.
const maxNeverAnswered = 2

// withoutNumbers removes words with digits, which differ between equal errors: ids, times, counts.
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

// exhausted reports whether no further attempt is allowed, whatever the failure. Continuations are limited by their
// cost instead, see [Config.CutInput].
func (r *run) exhausted(continues bool) bool {
	n, charged, most := len(r.x.Attempts), r.x.Charged(), r.Config.Attempts
	if continues {
		n, charged = n-r.x.extra, charged-r.x.extra
	}
	return charged >= most || n > maxFree*(most-1)
}

// idleLeft returns how much longer the request may wait for free failures to end.
func (r *run) idleLeft() time.Duration {
	most := r.Config.Patience
	if r.x.Patience > 0 {
		most = min(most, r.x.Patience/2) // the rest is for the answer
	}
	return most - r.x.idle
}

// inTime shortens an action's wait to the time left for free failures; it returns false if none is left. A wait that an
// upstream asks for does not count.
func (r *run) inTime(a *Action, f *Failure) bool {
	if !f.Free || a.Stated || a.Wait == 0 {
		return true
	}
	left := r.idleLeft()
	a.Wait = min(a.Wait, left)
	return left >= r.Config.BackoffMin/2
}

// crowdPatience returns how long a resend waits for one of the few places for resends.
func (r *run) crowdPatience() time.Duration {
	if r.prev != nil && r.prev.Free {
		return r.idleLeft()
	}
	return r.Config.BackoffMax
}

// commonErrors remembers which targets recently gave the same 500 to different requests and answered others. Such errors
// are intermittent, so a request is not their cause even if it gets one repeatedly. Safe for concurrent use.
type commonErrors struct {
	mu   sync.Mutex
	seed maphash.Seed
	last map[Target]commonError // nil until there is one
}

type commonError struct {
	said string
	body uint64 // hash of the first request with that error
	many bool   // other requests had the same error
	well bool   // other requests were answered
	at   time.Time
}

const (
	commonTime = time.Minute
	maxCommon  = 256
)

// widespread records an error of a target for a request body, and reports whether other requests got the same error while
// others were answered.
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

// answered records an answer of a target.
func (e *commonErrors) answered(t Target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.last[t]; ok && !c.well {
		c.well = true
		e.last[t] = c
	}
}
