package recovery

import (
	"strings"
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
	f.Repeated = c.same >= maxSame
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
