package recovery

import "sync"

// Names remembers the names of targets, so that looking one up on a board
// costs no allocation. It is bounded: clients may invent model names. Safe for
// concurrent use; the zero value is ready.
type Names struct {
	mu    sync.RWMutex
	names map[Target]string
}

const maxNames = 8192

// Of returns t.String().
func (n *Names) Of(t Target) string {
	n.mu.RLock()
	s, ok := n.names[t]
	n.mu.RUnlock()
	if ok {
		return s
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names == nil || len(n.names) >= maxNames {
		n.names = map[Target]string{}
	}
	s = t.String()
	n.names[t] = s
	return s
}
