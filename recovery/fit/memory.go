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
	turns turns

	mu       sync.Mutex
	sessions *store.Cache[string, *held]
	tired    *store.Cache[string, time.Time] // sessions whose summariser failed, and until when it rests

	queue   chan func()
	work    sync.WaitGroup  // the queue
	working context.Context // until what is queued is given up
	giveUp  context.CancelFunc
	once    sync.Once
	shut    bool // no more jobs
}

// held is a session in the process. It is changed under the memory's lock.
type held struct {
	value *session
	made  time.Time // when this process last changed it
	until time.Time
	ahead bool // its report is not for the store
}

// newMemory starts the goroutine that works off the path of requests; close ends it.
func newMemory(s Values, ttl func() time.Duration) *memory {
	m := &memory{store: s, ttl: ttl, sessions: store.NewCache[string, *held](maxHeld), tired: store.NewCache[string, time.Time](maxSessions),
		turns: newTurns(),
		queue: make(chan func(), maxQueue)}
	m.working, m.giveUp = context.WithCancel(context.Background())
	m.work.Go(func() {
		for job := range m.queue {
			if m.working.Err() == nil {
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
	now, s := held{}, session{}
	if h, ok := m.sessions.Get(x.Session); ok {
		if now, s = *h, *h.value; now.made.After(x.Started) {
			return now.value // by another request, perhaps after the store was read
		}
	}
	edits, errEdits := decodeSession(values[0])
	if errEdits == nil {
		s.edits = edits.edits
	}
	last, errReport := decodeReport(values[1])
	if errReport == nil && !now.ahead {
		s.report = last
	}
	if now.value == nil && errEdits != nil && errReport != nil {
		return nil
	}
	now.value = &s
	m.put(x.Session, now)
	return &s
}

// held is what the process knows of a session; the zero value if nothing.
func (m *memory) held(id string) held {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if !ok {
		return held{}
	}
	if time.Now().After(h.until) {
		m.sessions.Delete(id)
		return held{}
	}
	return *h
}

// local is what the process knows of a session, nil if nothing.
func (m *memory) local(id string) *session { return m.held(id).value }

// put holds a session. The lock is held.
func (m *memory) put(id string, h held) {
	size := 512 + len(id) + 24*len(h.value.Recipes)
	for _, box := range h.value.Sealed {
		size += 128 + len(box.Box) + 8*len(box.Kept)
	}
	h.until = time.Now().Add(m.ttl())
	m.sessions.Put(id, &h, max(size, maxHeld/maxSessions))
}

// hold keeps a session with new edits, which are copied to the store, unless even newer ones were made meanwhile.
func (m *memory) hold(id string, s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.sessions.Get(id)
	if ok && h.value.Gen > s.Gen {
		return
	}
	s.Written = uint64(time.Now().Unix())
	m.put(id, held{value: s, made: time.Now(), ahead: ok && h.ahead})
	m.share(editsKey(id), func() []byte { return m.local(id).stored() })
}

// share has the store copy a value as it is then; nil is none.
func (m *memory) share(key string, value func() []byte) {
	if m.store == nil {
		return
	}
	m.store.WriteBehind(key, func() (store.Entry, bool) {
		e := store.Entry{Key: key, Value: value(), TTL: m.ttl()}
		return e, e.Value != nil
	})
}

// refresh is the share of a lifetime after which edits are stored anew although
// they are the same: a session is remembered from its last request on.
const refresh = 8

// report adds a report to what is held of a session; known is the session if nothing is. If others may soon need it,
// the store gets it, too.
func (m *memory) report(id string, known *session, r report, needed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.sessions.Get(id); ok {
		known = h.value
	}
	next := &session{known.edits, r}
	if now := uint64(time.Now().Unix()); next.edited() && now > next.Written+uint64(m.ttl()/time.Second)/refresh {
		next.Written = now
		m.share(editsKey(id), func() []byte { return m.local(id).stored() })
	}
	m.put(id, held{value: next, made: time.Now(), ahead: !needed})
	if needed {
		m.share(reportKey(id), func() []byte { return m.local(id).reported() })
	}
}

// later runs a job off the request's path; false when there is too much to do.
func (m *memory) later(job func()) bool {
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

// close finishes what is queued. When ctx ends it gives up what is left, but for the job that runs.
func (m *memory) close(ctx context.Context) error {
	m.once.Do(func() {
		m.mu.Lock()
		m.shut = true
		close(m.queue)
		m.mu.Unlock()
	})
	defer context.AfterFunc(ctx, m.giveUp)()
	m.work.Wait()
	if m.working.Err() != nil {
		return ctx.Err()
	}
	m.giveUp()
	return nil
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
