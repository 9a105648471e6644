package quota

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// spare is what this process may charge on one meter while the store's server does not answer: first
// what it has reserved there in advance, then its equal share, which grows over a minute. So a limit
// that several replicas share is exceeded by at most the growth of their shares, even if the server
// only answers too late. Limiter.mu guards it.
type spare struct {
	level int64     // unused amount
	held  int64     // amount of requests that wait for the server; it is spent if the server does not answer
	asked bool      // a reservation is in progress
	grown time.Time // until when the share was added to level; zero while the server answers
	share int64     // the part of a calendar meter's share that has not been added
	slack int64     // the usable part of a large limit that was far from exhausted at the server's last answer
	told  time.Time // time of that answer
}

// A limit is large if this process's share of what is left is enough for manyRequests requests like
// the latest. If the server stops answering soon after, an eighth of that share may be used at once,
// because other replicas can have used little since.
const (
	manyRequests = 64
	slackShare   = 8
	fresh        = 3 * time.Second
)

// heard records what the limit leaves for this process, from the server's answer.
func (s *spare) heard(share, needed int64, now time.Time) {
	if s.share, s.slack, s.told = share, 0, now; needed*manyRequests <= share {
		s.slack = share / slackShare
	}
}

// ahead returns how much of a meter a replica reserves in advance: a sixteenth of its equal share, or
// what the latest request needed, up to a quarter of the share.
func (a *account) ahead(m meter) int64 {
	even := m.limit / max(a.replicas, 1)
	return max(even/16, min(a.needed[m.name], even/4))
}

// spareOf returns the spare of a meter, or nil if no other replica shares it.
func (a *account) spareOf(m meter) *spare {
	if a.replicas < 2 || m.unit == held {
		return nil
	}
	s := a.spares[m.name]
	if s == nil {
		s = &spare{}
		a.spares[m.name] = s
	}
	return s
}

// hold sets aside what a request may charge if the server does not answer; unreserved is the part that
// is not reserved at the server. ok is false if too little is left.
func (s *spare) hold(a *account, m meter, amount, least int64, now time.Time) (hold, unreserved int64, ok bool) {
	if least == 0 {
		least = amount
	}
	if s.grown.IsZero() {
		if lacks := amount - s.level; lacks > 0 && lacks <= s.slack && now.Sub(s.told) <= fresh {
			unreserved = lacks
			s.level, s.slack = s.level+lacks, s.slack-lacks
		}
	} else {
		even := m.limit / a.replicas
		grown := int64(float64(even) * min(1, now.Sub(s.grown).Minutes()))
		if m.calendar {
			grown = min(grown, s.share)
			s.share -= grown
		} else {
			grown = max(0, min(grown, even-s.level))
		}
		if grown > 0 || s.level >= even {
			s.level, s.grown = s.level+grown, now
		}
	}
	if s.level < least {
		return 0, 0, false
	}
	amount = min(amount, s.level)
	s.level -= amount
	s.held += amount
	return amount, unreserved, true
}

// answered returns a request's hold, because the server has decided. The grown share is then void.
func (s *spare) answered(hold, unreserved int64) {
	s.held -= hold
	if s.grown.IsZero() {
		s.level += hold - unreserved
	} else {
		s.level, s.grown = 0, time.Time{}
	}
}

// lost spends a request's hold, because the server did not answer.
func (s *spare) lost(hold int64, now time.Time) {
	s.held -= hold
	if s.grown.IsZero() {
		if s.grown = now; now.Sub(s.told) <= fresh {
			s.level, s.slack = s.level+s.slack, 0
		}
	}
}

// reserve refills the reservations, and returns those of idle accounts.
func (l *Limiter) reserve(ctx context.Context) {
	type reservation struct {
		spare *spare
		c     store.Charge
	}
	var list []reservation
	l.mu.Lock()
	for _, a := range l.accounts {
		idle := time.Since(a.asked) >= renewal
		for _, m := range a.meters {
			s := a.spareOf(m)
			if s == nil || s.asked || !s.grown.IsZero() {
				continue
			}
			c := l.charge(part{account: a, meter: m})
			switch want := a.ahead(m); {
			case idle:
				if c.Amount, s.level = -s.level, 0; c.Amount == 0 || !m.calendar { // a per-minute meter expires by itself
					continue
				}
			case want > 0 && s.level+s.held <= want/2:
				c.Amount, c.Least, c.Alone, s.asked = want-s.level-s.held, 1, -1, true
			default:
				continue
			}
			list = append(list, reservation{s, c})
		}
	}
	l.mu.Unlock()
	for _, r := range list {
		done, err := l.store.Charge(ctx, r.c)
		l.mu.Lock()
		if r.spare.asked = false; err == nil && r.c.Amount > 0 && done.Refused < 0 && !done.Alone {
			r.spare.level += done.Amounts[0]
		}
		l.mu.Unlock()
	}
}
