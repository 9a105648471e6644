package telemetry

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// refusedEvery is the shortest interval between history entries for rejected requests of one client
// with one reason.
const refusedEvery = time.Minute

// maxRefusals limits the pairs of client and reason that are counted separately within that time.
const maxRefusals = 64

// refusals selects which requests rejected before any attempt belong to the history: the first of a
// client and reason, and then one a minute, with the number since then. Otherwise anybody could flush
// the history. Only one goroutine may use it.
type refusals struct{ counted map[refusal]*tally }

type refusal struct{ peer, key, rule string }

// first reports whether ev belongs to the history, and sets its count.
func (r *refusals) first(ev *recovery.Event) bool {
	who := refusal{ev.Peer, ev.Key, ev.Rule}
	if r.counted[who] == nil {
		for old, t := range r.counted {
			if ev.Time.Sub(t.at) >= refusedEvery {
				delete(r.counted, old)
			}
		}
		if len(r.counted) >= maxRefusals {
			who = refusal{} // all further pairs are counted together
		}
	}
	t := r.counted[who]
	if t == nil {
		if r.counted == nil {
			r.counted = map[refusal]*tally{}
		}
		t = &tally{}
		r.counted[who] = t
	}
	t.count++
	if ev.Time.Sub(t.at) < refusedEvery {
		return false
	}
	ev.Count, *t = t.count, tally{at: ev.Time}
	return true
}
