package store

import (
	"container/list"
	"sync"
)

// Cache keeps values in the process, least recently used out first. It limits
// the sum of their sizes, in the unit of Put. Safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex
	max    int
	size   int
	recent *list.List // of *cached[K, V], the most recently used first
	index  map[K]*list.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// NewCache returns an empty cache for values of limit together.
func NewCache[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{max: limit, recent: list.New(), index: map[K]*list.Element{}}
}

// Get returns the value of a key and counts as a use of it.
func (c *Cache[K, V]) Get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.index[k]
	if !ok {
		return v, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached[K, V]).value, true
}

// Put keeps a value, in place of an earlier one of the key. It keeps none that
// is larger than a quarter of the limit, and drops the earlier one all the same.
func (c *Cache[K, V]) Put(k K, v V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.index[k]; ok {
		c.remove(e)
	}
	if size > c.max/4 {
		return
	}
	c.index[k] = c.recent.PushFront(&cached[K, V]{k, v, size})
	for c.size += size; c.size > c.max; {
		c.remove(c.recent.Back())
	}
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}

// Each calls f with every key and value, until f returns false. f must not use the cache.
func (c *Cache[K, V]) Each(f func(k K, v V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.index {
		if !f(k, e.Value.(*cached[K, V]).value) {
			return
		}
	}
}

// Delete removes a key.
func (c *Cache[K, V]) Delete(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.index[k]; ok {
		c.remove(e)
	}
}

// DeleteFunc removes the keys for which del returns true. del must not use the cache.
func (c *Cache[K, V]) DeleteFunc(del func(k K, v V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.index {
		if del(k, e.Value.(*cached[K, V]).value) {
			c.remove(e)
		}
	}
}

// remove removes a value. The lock is held.
func (c *Cache[K, V]) remove(e *list.Element) {
	old := c.recent.Remove(e).(*cached[K, V])
	delete(c.index, old.key)
	c.size -= old.size
}
