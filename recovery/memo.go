package recovery

import "sync"

// Names remembers the names of targets, so that looking one up on a board
// costs no allocation. Safe for concurrent use; the zero value is ready.
type Names struct{ memo Memo[Target] }

// Of returns t.String().
func (n *Names) Of(t Target) string {
	return n.memo.Of(t, Target.String)
}

// Memo caches the names of recurring keys, at most maxNames, since clients may invent keys. Safe for concurrent use; the
// zero value is ready.
type Memo[K comparable] struct {
	mu    sync.RWMutex
	names map[K]string
}

const maxNames = 8192

// Of returns the name of k. For an unknown k it calls name and caches the result.
func (m *Memo[K]) Of(k K, name func(K) string) string {
	m.mu.RLock()
	s, ok := m.names[k]
	m.mu.RUnlock()
	if ok {
		return s
	}
	s = name(k)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil || len(m.names) >= maxNames {
		m.names = map[K]string{}
	}
	m.names[k] = s
	return s
}
