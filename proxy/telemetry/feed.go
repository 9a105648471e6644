package telemetry

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Bounds of the live stream.
const (
	maxSubscribers  = 32
	subscriberQueue = 256
	ringSize        = 1000
)

var (
	errFull   = errors.New("too many subscribers")
	errClosed = errors.New("the stream has ended")
)

// message is one event as it is streamed. Its bytes are shared and never changed.
type message struct {
	name string
	data []byte // JSON, one line, without a line feed
	lost int    // messages that this subscriber missed before it
}

// feed hands messages to subscribers and remembers the last ones. Safe for
// concurrent use.
type feed struct {
	dropped prometheus.Counter
	all     atomic.Int32 // subscribers that want plain requests, too
	done    chan struct{}

	mu     sync.Mutex
	closed bool
	ring   []message // of ringSize at most; next is the oldest once it is full
	next   int
	subs   map[*subscriber]struct{}
}

// subscriber is one reader of the feed.
type subscriber struct {
	queue chan message
	all   bool
	lost  int // since the last message that it got; guarded by feed.mu
}

func newFeed(dropped prometheus.Counter) *feed {
	return &feed{dropped: dropped, done: make(chan struct{}), subs: map[*subscriber]struct{}{}}
}

func (f *feed) wantsAll() bool { return f.all.Load() > 0 }

// publish hands m to all subscribers, or, if it is not part of the history, to
// those who want everything. It never blocks.
func (f *feed) publish(m message, history bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if history {
		if len(f.ring) < ringSize {
			f.ring = append(f.ring, m)
		} else {
			f.ring[f.next] = m
			f.next = (f.next + 1) % ringSize
		}
	}
	for s := range f.subs {
		if !history && !s.all {
			continue
		}
		m.lost = s.lost
		select {
		case s.queue <- m:
			s.lost = 0
		default:
			s.lost++
			f.dropped.Inc()
		}
	}
}

// subscribe returns the last messages of the history, oldest first, and a
// subscriber that gets all that follow them.
func (f *feed) subscribe(last int, all bool) ([]message, *subscriber, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, nil, errClosed
	case len(f.subs) >= maxSubscribers:
		return nil, nil, errFull
	}
	s := &subscriber{queue: make(chan message, subscriberQueue), all: all}
	f.subs[s] = struct{}{}
	if all {
		f.all.Add(1)
	}
	last = min(last, len(f.ring))
	history := make([]message, 0, last)
	for i := len(f.ring) - last; i < len(f.ring); i++ {
		history = append(history, f.ring[(f.next+i)%len(f.ring)])
	}
	return history, s, nil
}

func (f *feed) unsubscribe(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
	if s.all {
		f.all.Add(-1)
	}
}

// missed takes the count of messages that s lost since the last one it got.
func (f *feed) missed(s *subscriber) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(s.queue) > 0 { // those in the queue came before the loss
		return 0
	}
	n := s.lost
	s.lost = 0
	return n
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.done)
	}
}
