package fit

import (
	"context"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Values is the store as this package needs it, which bounds how long it takes. What a session is, this package holds;
// the store copies it behind.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	// WriteBehind says that a value has changed: current is called when it is copied for the other replicas.
	WriteBehind(key string, current func() (store.Entry, bool))
}

// The bounds of what is held in the process.
const (
	maxSessions = 8192
	maxHeld     = 64 << 20 // bytes of all values
	maxQueue    = 128
)

// memory holds sessions: it owns those of this process, and knows from the store what other replicas have made of
// them. Safe for concurrent use.
type memory struct {
	store Values // nil where there is none that others share
	ttl   func() time.Duration
	turns turnCache

	mu       sync.Mutex
	sessions *store.Cache[string, *entry]
	backoffs *store.Cache[string, time.Time] // sessions whose summariser failed, and until when it rests

	queue  chan func()
	worker sync.WaitGroup  // the queue
	ctx    context.Context // until what is queued is given up
	cancel context.CancelFunc
	once   sync.Once
	closed bool // no more jobs
}

// entry is a session in the process. It is changed under the memory's lock.
type entry struct {
	value       *session
	changed     time.Time // when this process last changed it
	until       time.Time
	reportLocal bool // its report is not for the store
}

// newMemory starts the goroutine that works off the path of requests; close ends it.
func newMemory(s Values, ttl func() time.Duration) *memory {
	m := &memory{store: s, ttl: ttl, sessions: store.NewCache[string, *entry](maxHeld), backoffs: store.NewCache[string, time.Time](maxSessions),
		turns: newTurnCache(),
		queue: make(chan func(), maxQueue)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.worker.Go(func() {
		for job := range m.queue {
			if m.ctx.Err() == nil {
				job()
			}
		}
	})
	return m
}

// Keys are the keys of what the store has of a session.
func Keys(session string) []string { return []string{editsKey(session), reportKey(session)} }

func editsKey(id string) string  { return "fit/" + id }
func reportKey(id string) string { return "fit/" + id + "/report" }

// get is what is known of an exchange's session; nil if nothing is. It asks the store, and holds what it finds: what
// another replica has made, and what was made here and is not copied yet.
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
			return now.value // by another request, perhaps after the store was read
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

// lookup is what the process knows of a session; the zero value if nothing.
func (m *memory) lookup(id string) entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if !ok {
		return entry{}
	}
	if time.Now().After(h.until) {
		m.sessions.Delete(id)
		return entry{}
	}
	return *h
}

// local is what the process knows of a session, nil if nothing.
func (m *memory) local(id string) *session { return m.lookup(id).value }

// put holds a session. The lock is held.
func (m *memory) put(id string, h entry) {
	size := 512 + len(id) + 24*len(h.value.Recipes)
	for _, box := range h.value.Sealed {
		size += 128 + len(box.Box) + 8*len(box.Kept)
	}
	h.until = time.Now().Add(m.ttl())
	m.sessions.Put(id, &h, max(size, maxHeld/maxSessions))
}

// putEdits keeps a session with new edits, which are copied to the store, unless even newer ones were made meanwhile.
func (m *memory) putEdits(id string, s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if ok && h.value.Gen > s.Gen {
		return
	}
	s.Written = uint64(time.Now().Unix())
	m.put(id, entry{value: s, changed: time.Now(), reportLocal: ok && h.reportLocal})
	m.copyToStore(editsKey(id), func() []byte { return m.local(id).encodedEdits() })
}

// copyToStore has the store copy a value as it is then; nil is none.
func (m *memory) copyToStore(key string, value func() []byte) {
	if m.store == nil {
		return
	}
	m.store.WriteBehind(key, func() (store.Entry, bool) {
		e := store.Entry{Key: key, Value: value(), TTL: m.ttl()}
		return e, e.Value != nil
	})
}

// refreshShare is the share of a lifetime after which edits are stored anew although
// they are the same: a session is remembered from its last request on.
const refreshShare = 8

// addReport adds a report to what is held of a session; known is the session if nothing is. If others may soon need it,
// the store gets it, too.
func (m *memory) addReport(id string, known *session, r report, needed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.sessions.Get(id); ok {
		known = h.value
	}
	next := &session{known.edits, r}
	if now := uint64(time.Now().Unix()); next.edited() && now > next.Written+uint64(m.ttl()/time.Second)/refreshShare {
		next.Written = now
		m.copyToStore(editsKey(id), func() []byte { return m.local(id).encodedEdits() })
	}
	m.put(id, entry{value: next, changed: time.Now(), reportLocal: !needed})
	if needed {
		m.copyToStore(reportKey(id), func() []byte { return m.local(id).encodedReport() })
	}
}

// enqueue runs a job off the request's path; false when there is too much to do.
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

// close finishes what is queued. When ctx ends it gives up what is left, but for the job that runs.
func (m *memory) close(ctx context.Context) error {
	m.once.Do(func() {
		m.mu.Lock()
		m.closed = true
		close(m.queue)
		m.mu.Unlock()
	})
	defer context.AfterFunc(ctx, m.cancel)()
	m.worker.Wait()
	if m.ctx.Err() != nil {
		return ctx.Err()
	}
	m.cancel()
	return nil
}

// summarizerBackoff is how long a summariser that was of no use is not asked before a
// request has failed.
const summarizerBackoff = 10 * time.Minute

// backOff notes that a session's summariser was of no use.
func (m *memory) backOff(id string) {
	m.backoffs.Put(id, time.Now().Add(summarizerBackoff), 1)
}

func (m *memory) backingOff(id string) bool {
	until, _ := m.backoffs.Get(id)
	return time.Now().Before(until)
}
