package telemetry

import (
	"cmp"
	"fmt"
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

// messages renders the requests that pass f, oldest first.
func (k *latest) messages(replica string, f filter) (list []message) {
	k.mu.Lock()
	ring, first := slices.Clone(k.ring), max(0, k.n-maxHealthy)
	k.mu.Unlock()
	r := newRenderer()
	for i := range ring {
		n := first + (i-first%maxHealthy+maxHealthy)%maxHealthy
		id := eventID(fmt.Sprintf("%013d-%s-%d", max(0, ring[i].Time.UnixMilli())%1e13, replica, healthyNumbers+n))
		if m := (message{id: id, name: string(ring[i].Name), data: withID(id, r.render(record(&ring[i])))}); f.passes(m.data) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b message) int { return cmp.Compare(a.id, b.id) })
	return list
}
