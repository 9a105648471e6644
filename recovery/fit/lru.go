package fit

import (
	"container/list"
	"sync"
)

// lru keeps values up to a size in all, in the units of put; the least recently
// used go first. Safe for concurrent use.
type lru[K comparable, V any] struct {
	mu     sync.Mutex
	max    int
	size   int
	recent *list.List // of *kept[K, V], the latest in front
	index  map[K]*list.Element
}

type kept[K comparable, V any] struct {
	key   K
	value V
	size  int
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{max: limit, recent: list.New(), index: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(k K) (v V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.index[k]
	if !ok {
		return v, false
	}
	l.recent.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// put keeps a value; one that alone is a quarter of what is kept is not.
func (l *lru[K, V]) put(k K, v V, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.index[k]; ok || size > l.max/4 {
		return
	}
	l.index[k] = l.recent.PushFront(&kept[K, V]{k, v, size})
	for l.size += size; l.size > l.max; {
		e := l.recent.Back()
		old := l.recent.Remove(e).(*kept[K, V])
		delete(l.index, old.key)
		l.size -= old.size
	}
}
