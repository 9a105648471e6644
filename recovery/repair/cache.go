package repair

import (
	"bytes"
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// cache remembers what was made of bytes that come again and again. What was not
// used for longest is forgotten first. It is safe for concurrent use.
type cache[V any] struct {
	seed      maphash.Seed
	most      int // entries
	mostBytes int // of all that they were made of

	mu    sync.Mutex
	byKey map[uint64]*list.Element // by a hash of the bytes
	order *list.List               // of *cached, the latest used first
	bytes int
}

type cached[V any] struct {
	key   uint64
	raw   []byte
	value V
}

func newCache[V any](most, mostBytes int) cache[V] {
	return cache[V]{seed: maphash.MakeSeed(), most: most, mostBytes: mostBytes, byKey: map[uint64]*list.Element{}, order: list.New()}
}

// of finds what was made of raw, or makes it, of a copy that stays as it is.
func (c *cache[V]) of(raw []byte, produce func(own []byte) V) V {
	key := transcript.Sum(c.seed, 0, raw)
	c.mu.Lock()
	if e, ok := c.byKey[key]; ok {
		if known := e.Value.(*cached[V]); bytes.Equal(known.raw, raw) {
			c.order.MoveToFront(e)
			c.mu.Unlock()
			return known.value
		}
	}
	c.mu.Unlock()
	own := bytes.Clone(raw)
	v := produce(own) // outside of the lock: two may make the same, which is harmless
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; !ok { // else another goroutine was faster, or two hashes are equal
		c.byKey[key] = c.order.PushFront(&cached[V]{key, own, v})
		c.bytes += len(own)
	}
	for c.order.Len() > c.most || c.bytes > c.mostBytes {
		old := c.order.Remove(c.order.Back()).(*cached[V])
		delete(c.byKey, old.key)
		c.bytes -= len(old.raw)
	}
	return v
}
