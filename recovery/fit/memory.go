package fit

import (
	"context"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Values is the store as this package needs it.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
}

// The bounds of what is held in the process.
const (
	maxSessions = 8192
	maxHeld     = 64 << 20 // bytes of all values
	maxQueue    = 128
)

// memory remembers sessions: in the store, and the recent ones in the process,
// for when the store is away or behind, and for the requests that the process
// serves one after the other. Safe for concurrent use.
type memory struct {
	store Values        // nil where there is none that others share
	time  time.Duration // that one request may spend with the store
	ttl   func() time.Duration
	turns turns

	mu       sync.Mutex
	sessions *store.Cache[string, *held]
	tired    *store.Cache[string, time.Time] // sessions whose summariser failed, and until when it rests

	queue chan func(context.Context)
	ctx   context.Context // of everything off a request's path
	stop  context.CancelFunc
	work  sync.WaitGroup // the queue and what is being saved
	once  sync.Once
	shut  bool // no more jobs
}

// held is a session in the process. It is changed under the memory's lock.
type held struct {
	value *session
	until time.Time
	dirty bool // its edits are not in the store yet
	ahead bool // neither is its report
}

// newMemory starts the goroutine that writes; close ends it.
func newMemory(s Values, within time.Duration, ttl func() time.Duration) *memory {
	m := &memory{store: s, time: within, ttl: ttl, sessions: store.NewCache[string, *held](maxHeld), tired: store.NewCache[string, time.Time](maxSessions),
		turns: turns{store.NewCache[string, served](maxTurns)},
		queue: make(chan func(context.Context), maxQueue)}
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.work.Go(func() {
		for job := range m.queue {
			job(m.ctx)
		}
	})
	return m
}

// The names of a session's two values.
func editsKey(id string) string  { return "fit/" + id }
func reportKey(id string) string { return "fit/" + id + "/report" }

// get is what is known of a session; nil if nothing is. It asks the store, for
// as long as there is time, and holds what it finds.
func (m *memory) get(ctx context.Context, id string, within time.Duration) *session {
	local, dirty, ahead := m.held(id)
	if m.store == nil || within <= 0 {
		return local
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	values, err := m.store.Get(ctx, editsKey(id), reportKey(id))
	if err != nil || len(values) != 2 {
		return local
	}
	s := &session{}
	edits, err := decodeSession(values[0])
	known := err == nil
	switch {
	case known && !(local != nil && dirty && edits.Gen <= local.Gen): // else what others may have written is older
		s = edits
	case local != nil:
		*s, known = *local, true
	}
	if last, err := decodeReport(values[1]); err == nil && !(local != nil && ahead) {
		s.report, known = last, true
	} else if local != nil {
		s.report = local.report
	}
	if !known {
		return nil
	}
	m.hold(id, s, false)
	return s
}

// held is what the process knows of a session, and what of it the store does
// not have yet.
func (m *memory) held(id string) (s *session, dirty, ahead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if !ok {
		return nil, false, false
	}
	if time.Now().After(h.until) {
		m.sessions.Delete(id)
		return nil, false, false
	}
	return h.value, h.dirty, h.ahead
}

// local is what the process knows of a session.
func (m *memory) local(id string) *session {
	s, _, _ := m.held(id)
	return s
}

// hold keeps a session in the process. dirty says that its edits are new.
func (m *memory) hold(id string, s *session, dirty bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(id, s, dirty, false)
}

// put is hold, and says whether the report is new. The lock is held.
func (m *memory) put(id string, s *session, dirty, ahead bool) {
	h := &held{value: s, dirty: dirty, ahead: ahead, until: time.Now().Add(m.ttl())}
	size := 512 + len(id) + 24*len(s.Recipes)
	for _, box := range s.Sealed {
		size += 128 + len(box.Box) + 8*len(box.Kept)
	}
	if was, ok := m.sessions.Get(id); ok {
		if was.dirty && was.value.Gen > s.Gen {
			return // made here meanwhile
		}
		h.dirty = h.dirty || was.dirty && was.value.Gen == s.Gen
		h.ahead = h.ahead || was.ahead
	}
	m.sessions.Put(id, h, max(size, maxHeld/maxSessions))
}

// report adds a report to what is held of a session; known is the session if
// nothing is.
func (m *memory) report(id string, known *session, r report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.sessions.Get(id); ok {
		h.value, h.ahead, h.until = &session{h.value.edits, r}, true, time.Now().Add(m.ttl())
		return
	}
	m.put(id, &session{known.edits, r}, false, true)
}

// save stores the edits of a session that is held, as they are when it comes to
// it, so that the last ones held are the last ones stored. The result is closed
// when that is done, or its time is over; nil where there is nothing to wait for.
func (m *memory) save(id string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.store == nil || m.shut {
		return nil
	}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(m.ctx, m.time)
	m.work.Go(func() {
		defer close(done)
		defer cancel()
		m.write(ctx, id, false)
	})
	return done
}

// refresh is the share of a lifetime after which edits are stored anew although
// they are the same: a session is remembered from its last request on.
const refresh = 8

// write stores what the store does not have of a session: its edits and, with
// report, what was reported last. It takes as long as ctx allows.
func (m *memory) write(ctx context.Context, id string, report bool) {
	s, dirty, ahead := m.held(id)
	if m.store == nil || s == nil {
		return
	}
	now := uint64(time.Now().Unix())
	stored := s.edits
	var entries []store.Entry
	if dirty || s.edited() && now > s.Written+uint64(m.ttl()/time.Second)/refresh {
		stored.Written = now
		entries = append(entries, store.Entry{Key: editsKey(id), Value: stored.encode(), TTL: m.ttl()})
	}
	if report && ahead {
		entries = append(entries, store.Entry{Key: reportKey(id), Value: s.report.encode(), TTL: m.ttl()})
	}
	if len(entries) == 0 || m.store.Set(ctx, entries...) != nil {
		return // a store that is away has said so itself; the process remembers
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if !ok || h.value.Gen != s.Gen {
		return
	}
	h.ahead = h.ahead && !(report && h.value == s)
	kept := *h.value
	kept.Written = stored.Written
	h.value, h.dirty = &kept, false
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
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.work.Wait()
	}()
	select {
	case <-done:
		m.stop()
		return nil
	case <-ctx.Done():
		m.stop()
		<-done
		return ctx.Err()
	}
}

// restTime is how long a summariser that was of no use is not asked before a
// request has failed.
const restTime = 10 * time.Minute

// rest notes that a session's summariser was of no use.
func (m *memory) rest(id string) {
	m.tired.Put(id, time.Now().Add(restTime), 1)
}

func (m *memory) rests(id string) bool {
	until, _ := m.tired.Get(id)
	return time.Now().Before(until)
}
