package telemetry

import (
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// fallbackEvery is the shortest interval between events for the same model and fallback target.
const fallbackEvery = time.Minute

// maxFallbacks limits the pairs of model and target that are counted at the same time.
const maxFallbacks = 1024

// fallbacks aggregates the events of requests that a fallback target answered: the first is written at
// once, later ones once a minute with their number. Otherwise they would fill the history during an
// outage. Safe for concurrent use.
type fallbacks struct {
	mu      sync.Mutex
	counted map[fallback]*tally
}

type fallback struct {
	model  string
	target recovery.Target
}

type tally struct {
	at    time.Time // time of the latest event
	count int       // requests since then
}

// first reports whether ev is to be written now, and turns it into the aggregated event. Otherwise it
// only counts it.
func (f *fallbacks) first(ev *recovery.Event) bool {
	pair := fallback{ev.Model, ev.Target}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.counted[pair]; t != nil {
		t.count++
		return false
	}
	if f.counted == nil || len(f.counted) >= maxFallbacks {
		f.counted = map[fallback]*tally{}
	}
	f.counted[pair] = &tally{at: ev.Time}
	*ev = pair.event(ev.Time, 1)
	return true
}

// due returns the aggregated events of pairs whose minute is over, and forgets pairs without requests.
func (f *fallbacks) due(now time.Time) (events []recovery.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pair, t := range f.counted {
		switch {
		case now.Sub(t.at) < fallbackEvery:
		case t.count == 0:
			delete(f.counted, pair)
		default:
			events = append(events, pair.event(now, t.count))
			*t = tally{at: now}
		}
	}
	return events
}

// event returns the aggregated event of n requests. It belongs to no single request.
func (p fallback) event(at time.Time, n int) recovery.Event {
	return recovery.Event{Name: recovery.EventFallbackUsed, Time: at, Origin: recovery.Origin{Model: p.model}, Target: p.target, Count: n}
}
