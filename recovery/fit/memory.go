package fit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// storeTime bounds the time that one request spends with the store.
const storeTime = 50 * time.Millisecond

// Values is the store as this package needs it.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
}

// The bounds of what is held in the process.
const (
	maxSessions = 1024
	maxHeld     = 32 << 20 // bytes of all values
	maxQueue    = 128
)

// memory remembers sessions: in the store, and the recent ones in the process,
// for when the store is away or behind. Safe for concurrent use.
type memory struct {
	store Values
	ttl   time.Duration

	mu     sync.Mutex
	recent *list.List               // of *held, the latest in front
	index  map[string]*list.Element // by session
	size   int

	queue chan func(context.Context)
	done  chan struct{}
	stop  context.CancelFunc
	once  sync.Once
	shut  bool // no more jobs

	tired map[string]time.Time // sessions whose summariser failed, and until when it rests
}

// held is a session in the process.
type held struct {
	id    string
	value *session
	size  int
	until time.Time
	dirty bool // not in the store yet
}

// newMemory starts the goroutine that writes; close ends it.
func newMemory(s Values, ttl time.Duration) *memory {
	ctx, stop := context.WithCancel(context.Background())
	m := &memory{store: s, ttl: ttl, recent: list.New(), index: map[string]*list.Element{}, tired: map[string]time.Time{},
		queue: make(chan func(context.Context), maxQueue), done: make(chan struct{}), stop: stop}
	go func() {
		defer close(m.done)
		for job := range m.queue {
			job(ctx)
		}
	}()
	return m
}

func sessionKey(id string) string { return "fit/" + id }

// get is what is known of a session; nil if nothing is. It takes at most
// storeTime.
func (m *memory) get(ctx context.Context, id string) *session {
	local := m.local(id)
	if m.store == nil {
		return local
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	values, err := m.store.Get(ctx, sessionKey(id))
	if err != nil || len(values) != 1 || values[0] == nil {
		return local
	}
	stored, err := decodeSession(values[0])
	if err != nil || local != nil && stored.Gen <= local.Gen && m.unwritten(id) {
		return local // what others may have written is older
	}
	return stored
}

// unwritten reports whether the process knows more than the store.
func (m *memory) unwritten(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.index[id]
	return ok && e.Value.(*held).dirty
}

// local is what the process knows of a session.
func (m *memory) local(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.index[id]
	if !ok {
		return nil
	}
	h := e.Value.(*held)
	if time.Now().After(h.until) {
		m.forget(e)
		return nil
	}
	m.recent.MoveToFront(e)
	return h.value
}

// hold keeps a session in the process.
func (m *memory) hold(id string, s *session) {
	h := &held{id: id, value: s, dirty: true, size: 512 + len(id) + 24*len(s.Recipes), until: time.Now().Add(m.ttl)}
	for _, box := range s.Sealed {
		h.size += 128 + len(box.Box) + 8*len(box.Kept)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.index[id]; ok {
		m.forget(e)
	}
	m.index[id] = m.recent.PushFront(h)
	m.size += h.size
	for len(m.index) > maxSessions || m.size > maxHeld && len(m.index) > 1 {
		m.forget(m.recent.Back())
	}
}

// forget drops an entry. The lock is held.
func (m *memory) forget(e *list.Element) {
	h := m.recent.Remove(e).(*held)
	delete(m.index, h.id)
	m.size -= h.size
}

// write stores a session; it is called by jobs.
func (m *memory) write(ctx context.Context, id string, s *session) {
	if m.store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if m.store.Set(ctx, store.Entry{Key: sessionKey(id), Value: s.encode(), TTL: m.ttl}) != nil {
		return // a store that is away has said so itself; the process remembers
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.index[id]; ok && e.Value.(*held).value == s {
		e.Value.(*held).dirty = false
	}
}

// later runs a job off the request's path; false when there is too much to do.
func (m *memory) later(job func(context.Context)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shut {
		return false
	}
	select {
	case m.queue <- job:
		return true
	default:
		return false
	}
}

// close finishes what is queued, until ctx ends.
func (m *memory) close(ctx context.Context) error {
	m.once.Do(func() {
		m.mu.Lock()
		m.shut = true
		close(m.queue)
		m.mu.Unlock()
	})
	select {
	case <-m.done:
		m.stop()
		return nil
	case <-ctx.Done():
		m.stop()
		<-m.done
		return ctx.Err()
	}
}

// restTime is how long a summariser that was of no use is not asked before a
// request has failed.
const restTime = 10 * time.Minute

// rest notes that a session's summariser was of no use.
func (m *memory) rest(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tired) >= maxSessions {
		clear(m.tired)
	}
	m.tired[id] = time.Now().Add(restTime)
}

func (m *memory) rests(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.tired[id])
}
