package recoverytest

import (
	"slices"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
)

// Observer keeps what it is told. The zero value is ready, and safe for concurrent use.
type Observer struct {
	mu     sync.Mutex
	events []recovery.Event
}

var _ recovery.Observer = (*Observer)(nil)

// Observe implements recovery.Observer.
func (o *Observer) Observe(ev recovery.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, ev)
}

// Events are the events so far, in their order.
func (o *Observer) Events() []recovery.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

// Count is how many events have this name.
func (o *Observer) Count(name recovery.EventName) (n int) {
	for _, ev := range o.Events() {
		if ev.Name == name {
			n++
		}
	}
	return n
}

// Names are the names of the events, in their order, with spaces between them.
func (o *Observer) Names() string {
	var names []string
	for _, ev := range o.Events() {
		names = append(names, string(ev.Name))
	}
	return strings.Join(names, " ")
}
