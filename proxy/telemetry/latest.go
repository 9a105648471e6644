package telemetry

import (
	"slices"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// maxHealthy is how many of the latest uneventful requests are kept in memory.
const maxHealthy = 1000

// healthyNumbers is the first number in ids of uneventful requests; it keeps them different from ids
// of written events.
const healthyNumbers = 1 << 50

// latest keeps the latest uneventful requests, so that a single one can be looked up. They are in no
// log, and end with the process. Safe for concurrent use.
type latest struct {
	mu   sync.Mutex
	ring []recovery.Event
	n    int // events so far
}

// keep stores a copy of ev, whose contents must not change afterwards.
func (k *latest) keep(ev *recovery.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ring) < maxHealthy {
		k.ring = append(k.ring, *ev)
	} else {
		k.ring[k.n%maxHealthy] = *ev
	}
	e := &k.ring[k.n%maxHealthy]
	e.Attempts = nil // they would hold the request's memory, and the event has the same data of the only one
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	k.n++
}

// messages renders the requests that pass f, in the order in which they ended.
func (k *latest) messages(replica string, f filter) (list []message) {
	k.mu.Lock()
	ring, n := slices.Clone(k.ring), k.n
	k.mu.Unlock()
	r := newRenderer()
	for i := max(0, n-maxHealthy); i < n; i++ {
		ev := &ring[i%maxHealthy]
		id := newID(ev.Time, replica, healthyNumbers+i)
		if m := (message{id: id, name: string(ev.Name), data: withID(id, r.render(record(ev)))}); f.passes(m.data) {
			list = append(list, m)
		}
	}
	return list
}
