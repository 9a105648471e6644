package telemetry

import (
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// fallbackEvery is how often one target is said to answer in place of a model's first.
const fallbackEvery = time.Minute

// maxFallbacks limits the pairs of a model and a target that are counted at once.
const maxFallbacks = 1024

// fallbacks gathers the events of requests that a target of a later rank answered: the first is written
// at once, those that follow once a minute, with their number. Without it an outage would fill the
// history with them. Safe for concurrent use.
type fallbacks struct {
	mu      sync.Mutex
	counted map[fallback]*tally
}

type fallback struct {
	model  string
	target recovery.Target
}

type tally struct {
	at    time.Time // when it was last written
	count int       // since then
}

// first makes ev the event to write now, or counts it for later.
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

// due returns the events of what was counted for a minute, and forgets what has ended.
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

// event belongs to no request: it stands for all that were answered so.
func (p fallback) event(at time.Time, n int) recovery.Event {
	return recovery.Event{Name: recovery.EventFallbackUsed, Time: at, Model: p.model, Target: p.target, Count: n}
}
