package fit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Values is the part of the store that this package uses. The store limits how long calls take. Sessions live in
// this package; the store copies them in the background.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	// WriteBehind schedules the copy of a changed value; it calls current when it makes the copy.
	WriteBehind(key string, current func() (store.Entry, bool))
}

// The limits of sessions in the process.
const (
	maxSessions = 8192
	maxHeld     = 64 << 20 // bytes of all values
	maxQueue    = 128
)

// memory holds the sessions of this process, and reads from the store what other replicas have made of them. Safe
// for concurrent use.
type memory struct {
	store Values // nil without a shared one
	ttl   func() time.Duration
	turns turnCache

	mu       sync.Mutex
	sessions *store.Cache[string, *entry]
	backoffs *store.Cache[string, time.Time] // until when a session's failed summariser is not called

	queue  chan func()
	worker sync.WaitGroup
	drop   atomic.Bool // queued jobs are dropped
	closed bool        // takes no more jobs
}

// entry is a session in the process. The memory's lock guards it.
type entry struct {
	value       *session
	changed     time.Time // when this process last changed it
	until       time.Time // end of its lifetime
	reportLocal bool      // its report was not stored, so the stored one is older
}

// newMemory starts the goroutine that runs jobs off the request's path; close ends it.
func newMemory(s Values, ttl func() time.Duration) *memory {
	m := &memory{store: s, ttl: ttl, sessions: store.NewCache[string, *entry](maxHeld), backoffs: store.NewCache[string, time.Time](maxSessions),
		turns: newTurnCache(),
		queue: make(chan func(), maxQueue)}
	m.worker.Go(func() {
		for job := range m.queue {
			if !m.drop.Load() {
				job()
			}
		}
	})
	return m
}

// Keys returns the store's keys of a session.
func Keys(session string) []string { return []string{editsKey(session), reportKey(session)} }

func editsKey(id string) string  { return "fit/" + id }
func reportKey(id string) string { return "fit/" + id + "/report" }

// get returns an exchange's session, nil if there is none. It reads the store and merges what other replicas have
// written with what this process holds.
func (m *memory) get(ctx context.Context, x *recovery.Exchange) *session {
	local := m.local(x.Session)
	if m.store == nil {
		return local
	}
	values, err := x.From(m.store).Get(ctx, Keys(x.Session)...)
	if err != nil || len(values) != 2 {
		return local
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, s := entry{}, session{}
	if h, ok := m.sessions.Get(x.Session); ok {
		if now, s = *h, *h.value; now.changed.After(x.Started) {
			return now.value // another request changed it meanwhile, perhaps after the read
		}
	}
	edits, errEdits := decodeSession(values[0])
	if errEdits == nil {
		s.edits = edits.edits
	}
	last, errReport := decodeReport(values[1])
	if errReport == nil && !now.reportLocal {
		s.report = last
	}
	if now.value == nil && errEdits != nil && errReport != nil {
		return nil
	}
	now.value = &s
	m.put(x.Session, now)
	return &s
}

// local returns the session as the process holds it, nil if it does not.
func (m *memory) local(id string) *session {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if !ok {
		return nil
	}
	if time.Now().After(h.until) {
		m.sessions.Delete(id)
		return nil
	}
	return h.value
}

// put stores an entry in the process. The caller holds the lock.
func (m *memory) put(id string, h entry) {
	size := 512 + len(id) + 24*len(h.value.Recipes)
	for _, box := range h.value.Sealed {
		size += 128 + len(box.Box) + 8*len(box.Kept)
	}
	h.until = time.Now().Add(m.ttl())
	m.sessions.Put(id, &h, max(size, maxHeld/maxSessions))
}

// putEdits holds a session with new edits and schedules their copy to the store, unless even newer ones are held.
func (m *memory) putEdits(id string, s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if ok && h.value.Gen > s.Gen {
		return
	}
	s.Written = uint64(time.Now().Unix())
	m.put(id, entry{value: s, changed: time.Now(), reportLocal: ok && h.reportLocal})
	m.copyEdits(id)
}

// copyEdits has the store copy a session's edits.
func (m *memory) copyEdits(id string) {
	m.copyToStore(id, editsKey(id), func(s *session) []byte { return s.edits.encode() })
}

// copyToStore has the store copy a part of a session as it is at that time, if it is held then.
func (m *memory) copyToStore(id, key string, encode func(*session) []byte) {
	if m.store == nil {
		return
	}
	m.store.WriteBehind(key, func() (store.Entry, bool) {
		s := m.local(id)
		if s == nil {
			return store.Entry{}, false
		}
		return store.Entry{Key: key, Value: encode(s), TTL: m.ttl()}, true
	})
}

// Unchanged edits are stored again after 1/refreshShare of their lifetime, which counts from the last request.
const refreshShare = 8

// addReport adds a report to a session; known is the session in case it is not held any more. needed also sends the
// report to the store.
func (m *memory) addReport(id string, known *session, r report, needed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.sessions.Get(id); ok {
		known = h.value
	}
	next := &session{known.edits, r}
	if now := uint64(time.Now().Unix()); next.edited() && now > next.Written+uint64(m.ttl()/time.Second)/refreshShare {
		next.Written = now
		m.copyEdits(id)
	}
	m.put(id, entry{value: next, changed: time.Now(), reportLocal: !needed})
	if needed {
		m.copyToStore(id, reportKey(id), func(s *session) []byte { return s.report.encode() })
	}
}

// enqueue runs a job off the request's path. It returns false if the queue is full or closed.
func (m *memory) enqueue(job func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	select {
	case m.queue <- job:
		return true
	default:
		return false
	}
}

// close runs the queued jobs. When ctx ends it waits only for the running one and drops the others.
func (m *memory) close(ctx context.Context) error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		close(m.queue)
	}
	m.mu.Unlock()
	defer context.AfterFunc(ctx, func() { m.drop.Store(true) })()
	m.worker.Wait()
	if m.drop.Load() {
		return ctx.Err()
	}
	return nil
}

// summarizerBackoff is how long a session's failed summariser is not used before a refusal. After one it is.
const summarizerBackoff = 10 * time.Minute

// backOff records that a session's summariser failed.
func (m *memory) backOff(id string) {
	m.backoffs.Put(id, time.Now().Add(summarizerBackoff), 1)
}

// backingOff reports whether a session's summariser failed lately.
func (m *memory) backingOff(id string) bool {
	until, _ := m.backoffs.Get(id)
	return time.Now().Before(until)
}
