package fit

import (
	"math/bits"
	"sync"
)

// countKind keeps apart what was counted of the same bytes.
type countKind uint8

const (
	kindText countKind = iota
	kindMessage
	kindTool
	kindSchema
)

// countKey names a part of a request by its content and by how it is counted.
// The hash is seeded in each process, so that nobody can make two messages
// with the same key.
type countKey struct {
	hash     uint64
	size     int
	kind     countKind
	encoding string
	scale    uint32
}

// shards bounds how much requests wait for each other.
const shards = 16

// counted remembers counts, the least recently used of a shard go first. Its
// size is bounded by the number of entries: an entry holds no text.
type counted struct {
	shards [shards]shard
}

type shard struct {
	mu    sync.Mutex
	max   int
	index map[countKey]int32
	ring  []node // a list by use; ring[0] is its head
}

// node is an entry. Links are positions in the ring.
type node struct {
	key        countKey
	weight     weight
	prev, next int32
}

func newCounted(entries int) *counted {
	c := new(counted)
	for i := range c.shards {
		c.shards[i] = shard{max: max(1, entries/shards), index: make(map[countKey]int32), ring: make([]node, 1)}
	}
	return c
}

func (c *counted) shard(k countKey) *shard { return &c.shards[k.hash%shards] }

func (c *counted) get(k countKey) (weight, bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[k]
	if !ok {
		return weight{}, false
	}
	s.unlink(i)
	s.link(i)
	return s.ring[i].weight, true
}

func (c *counted) put(k countKey, w weight) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.index[k]; ok { // counted twice at the same time
		s.ring[i].weight = w
		return
	}
	var i int32
	if len(s.index) < s.max {
		i = int32(len(s.ring))
		s.ring = append(s.ring, node{})
	} else {
		i = s.ring[0].prev // the least recently used
		s.unlink(i)
		delete(s.index, s.ring[i].key)
	}
	s.ring[i] = node{key: k, weight: w}
	s.index[k] = i
	s.link(i)
}

// link puts an entry in front.
func (s *shard) link(i int32) {
	first := s.ring[0].next
	s.ring[i].prev, s.ring[i].next = 0, first
	s.ring[first].prev = i
	s.ring[0].next = i
}

func (s *shard) unlink(i int32) {
	n := &s.ring[i]
	s.ring[n.prev].next, s.ring[n.next].prev = n.next, n.prev
}

// fold is the folded product of two words.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b)
	return hi ^ lo
}
