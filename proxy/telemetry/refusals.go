package telemetry

import (
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// refusedEvery is how often the history has a request of one client that was turned away for one reason.
const refusedEvery = time.Minute

// maxRefusals limits the clients and reasons that are told apart within that time.
const maxRefusals = 64

// refusals chooses which requests that were turned away at the door belong to the history: the first of a client and
// reason, and then one a minute, with the number of those since. Otherwise anybody could flush the history. It belongs to
// one goroutine.
type refusals struct{ told map[refusal]*tally }

type refusal struct{ peer, key, rule string }

// first reports whether ev belongs to the history, and gives it its number.
func (r *refusals) first(ev *recovery.Event) bool {
	who := refusal{ev.Peer, ev.Key, ev.Rule}
	if r.told[who] == nil {
		for old, t := range r.told {
			if ev.Time.Sub(t.at) >= refusedEvery {
				delete(r.told, old)
			}
		}
		if len(r.told) >= maxRefusals {
			who = refusal{} // too many to be told apart
		}
	}
	t := r.told[who]
	if t == nil {
		if r.told == nil {
			r.told = map[refusal]*tally{}
		}
		t = &tally{}
		r.told[who] = t
	}
	t.count++
	if ev.Time.Sub(t.at) < refusedEvery {
		return false
	}
	ev.Count, *t = t.count, tally{at: ev.Time}
	return true
}
