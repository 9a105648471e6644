package telemetry

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Bounds of the live stream.
const (
	maxSubscribers  = 32
	subscriberQueue = 256
	ringSize        = maxHistory
)

var (
	errFull   = errors.New("too many subscribers")
	errClosed = errors.New("the stream has ended")
)

// message is one event as it is streamed. Its bytes are shared and never changed.
type message struct {
	id   eventID
	name string
	data []byte // JSON, one line, without a line feed, with the id
	lost int    // messages that this subscriber missed before it
}

// feed hands messages to subscribers and remembers the last ones. Safe for
// concurrent use.
type feed struct {
	dropped func(n int)
	all     atomic.Int32 // subscribers that want plain requests, too
	done    chan struct{}

	mu     sync.Mutex
	closed bool
	ring   []message // of ringSize at most; next is the oldest once it is full
	next   int
	subs   map[*subscriber]struct{}
	// follow, if set, hands on other replicas' events while there are subscribers; it
	// closes ready once it misses none.
	follow func(ready chan<- struct{}, stop <-chan struct{})
	ready  chan struct{}
	stop   chan struct{}
}

// scope says who gets a message.
type scope uint8

const (
	forAll    scope = iota // everybody, and it is remembered
	forThose               // those who want plain requests, too
	fromOther              // everybody; another replica remembers it
)

// subscriber is one reader of the feed.
type subscriber struct {
	queue     chan message
	all       bool
	wanted    filter
	following <-chan struct{}  // closed once nothing of other replicas is missed; nil where there are none
	seen      map[eventID]bool // sent as history; for the reader's goroutine only
	lost      int              // since the last message that it got; guarded by feed.mu
}

func newFeed(dropped func(n int)) *feed {
	return &feed{dropped: dropped, done: make(chan struct{}), subs: map[*subscriber]struct{}{}}
}

func (f *feed) wantsAll() bool { return f.all.Load() > 0 }

// publish hands m to the subscribers that it is for. It never blocks.
func (f *feed) publish(m message, to scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if to == forAll {
		if len(f.ring) < ringSize {
			f.ring = append(f.ring, m)
		} else {
			f.ring[f.next] = m
			f.next = (f.next + 1) % ringSize
		}
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

// subscribe returns what is remembered, oldest first, and a subscriber that gets all
// that follows.
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
	return f.remembered(), s, nil
}

// remembered is the ring, oldest first. The caller holds mu.
func (f *feed) remembered() []message {
	return slices.Concat(f.ring[f.next:], f.ring[:f.next])
}

// lately is what is remembered, oldest first.
func (f *feed) lately() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.remembered()
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
