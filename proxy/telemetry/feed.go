package telemetry

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Limits of the live stream.
const (
	maxSubscribers  = 32
	subscriberQueue = 256
	ringSize        = maxHistory
)

var (
	errFull   = errors.New("too many subscribers")
	errClosed = errors.New("the stream has ended")
)

// message is one event as it is streamed. Its data is shared and must not be changed.
type message struct {
	id   eventID
	name string
	data []byte // JSON in one line, without a line feed, with the id
	lost int    // messages that this subscriber missed before this one
}

// feed sends messages to subscribers and keeps the latest ones. Safe for concurrent use.
type feed struct {
	dropped func(n int)
	all     atomic.Int32 // subscribers that also want uneventful requests
	done    chan struct{}

	mu     sync.Mutex
	closed bool
	ring   []message // at most ringSize, oldest first
	subs   map[*subscriber]struct{}
	// follow, if set, publishes other replicas' events while there are subscribers; it closes ready
	// once it misses none.
	follow func(ready chan<- struct{}, stop <-chan struct{})
	ready  chan struct{}
	stop   chan struct{}
}

// scope is the group of receivers of a message.
type scope uint8

const (
	forAll    scope = iota // every subscriber, and the ring
	forThose               // subscribers that also want uneventful requests
	fromOther              // every subscriber; another replica keeps it
)

// subscriber is one reader of the feed.
type subscriber struct {
	queue     chan message
	all       bool
	wanted    filter
	following <-chan struct{}  // closed once no events of other replicas are missed; nil without other replicas
	seen      map[eventID]bool // ids sent as history; only for the reader's goroutine
	lost      int              // messages lost since the last one it got; guarded by feed.mu
}

func newFeed(dropped func(n int)) *feed {
	return &feed{dropped: dropped, done: make(chan struct{}), subs: map[*subscriber]struct{}{}}
}

func (f *feed) wantsAll() bool { return f.all.Load() > 0 }

// publish sends m to the subscribers in scope. It never blocks.
func (f *feed) publish(m message, to scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if to == forAll {
		f.ring = appendBounded(f.ring, m, ringSize)
	}
	for s := range f.subs {
		if to == forThose && !s.all || !s.wanted.passes(m.data) {
			continue
		}
		m.lost = s.lost
		select {
		case s.queue <- m:
			s.lost = 0
		default:
			s.lost++
			f.dropped(1)
		}
	}
}

// subscribe returns the kept messages, oldest first, and a subscriber for all later ones.
func (f *feed) subscribe(all bool, wanted filter) ([]message, *subscriber, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, nil, errClosed
	case len(f.subs) >= maxSubscribers:
		return nil, nil, errFull
	}
	s := &subscriber{queue: make(chan message, subscriberQueue), all: all, wanted: wanted}
	if len(f.subs) == 0 && f.follow != nil {
		f.ready, f.stop = make(chan struct{}), make(chan struct{})
		go f.follow(f.ready, f.stop)
	}
	s.following = f.ready
	f.subs[s] = struct{}{}
	if all {
		f.all.Add(1)
	}
	return slices.Clone(f.ring), s, nil
}

// lately returns the kept messages, oldest first.
func (f *feed) lately() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ring)
}

func (f *feed) unsubscribe(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
	if len(f.subs) == 0 && f.stop != nil {
		close(f.stop)
		f.ready, f.stop = nil, nil
	}
	if s.all {
		f.all.Add(-1)
	}
}

// missed returns and resets the number of messages that s lost since the last one it got.
func (f *feed) missed(s *subscriber) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(s.queue) > 0 { // the queued ones were sent before the loss
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

// appendBounded appends to a list, and drops the oldest element beyond size.
func appendBounded[E any](list []E, e E, size int) []E {
	list = append(list, e)
	if len(list) > size {
		clear(list[:1]) // frees its memory before the next append reallocates the list
		list = list[1:]
	}
	return list
}
