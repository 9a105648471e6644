package recoverytest

import (
	"slices"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
)

// Observer records events. The zero value is ready to use. It is safe for concurrent use.
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

// Events returns the events so far, in order.
func (o *Observer) Events() []recovery.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.events)
}

// Count returns how many events have this name.
func (o *Observer) Count(name recovery.EventName) (n int) {
	for _, ev := range o.Events() {
		if ev.Name == name {
			n++
		}
	}
	return n
}

// Names returns the names of the events in order, separated by spaces.
func (o *Observer) Names() string {
	var names []string
	for _, ev := range o.Events() {
		names = append(names, string(ev.Name))
	}
	return strings.Join(names, " ")
}
