package memory

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// kind separates the names of values, accounts, rings, boards and logs.
type kind uint8

const (
	value kind = iota
	account
	ring
	fields
	log
)

type id struct {
	kind kind
	name string
}

// entry is one slot of a ring.
type entry struct {
	name  string
	value []byte
}

func (e entry) size() int { return len(e.name) + len(e.value) + overhead/2 }

// holderKey names a holder of a meter.
type holderKey struct{ meter, holder string }

// heldAmount is what a holder has of a meter, and until when.
type heldAmount struct {
	amount int64
	until  time.Time
}

// item is what the table keeps under one name.
type item struct {
	id      id
	size    int // of the content in bytes, the argument of put
	expires time.Time

	value  []byte
	meters map[string]store.Tally
	held   map[holderKey]heldAmount
	ring   []entry
	fields map[string]store.Field
	log    [][]byte

	index int           // in the heap; -1 if it is not in the table
	use   *list.Element // in the order of use
}

const (
	// overhead is an estimate of the bytes that an item takes besides its content.
	overhead = 256
	// sweep is the most expired items that one write removes: more than one, so
	// that they cannot pile up.
	sweep = 8
)

// table is a bounded map, ordered by last use and by expiry.
type table struct {
	cfg    Config
	items  map[id]*item
	ends   expiryHeap
	recent *list.List // of *item, the most recently used first
	bytes  int64
}

func newTable(cfg Config) table { return table{cfg: cfg, items: map[id]*item{}, recent: list.New()} }

// maxItemBytes is the largest size of a ring or log in bytes: one must not push
// out everything else.
func (t *table) maxItemBytes() int64 { return t.cfg.MaxBytes / 4 }

// find returns an item that has not expired and marks it as used, or returns nil.
func (t *table) find(k id, now time.Time) *item {
	it := t.items[k]
	if it == nil {
		return nil
	}
	if !it.expires.After(now) {
		t.drop(it)
		return nil
	}
	t.recent.MoveToFront(it.use)
	return it
}

// findOrNew returns what find finds, or else a new item, which put adds.
func (t *table) findOrNew(k id, now time.Time) *item {
	if it := t.find(k, now); it != nil {
		return it
	}
	return &item{id: k, index: -1}
}

// put adds an item or updates its size and expiry; then it removes expired and, beyond the bounds, the least recently
// used items.
func (t *table) put(it *item, size int, end, now time.Time) {
	if it.index < 0 {
		t.items[it.id] = it
		t.bytes += int64(len(it.id.name) + overhead)
		it.use = t.recent.PushFront(it)
		it.expires = end
		heap.Push(&t.ends, it)
	} else if !it.expires.Equal(end) {
		it.expires = end
		heap.Fix(&t.ends, it.index)
	}
	t.bytes += int64(size - it.size)
	it.size = size

	for range sweep {
		if len(t.ends) == 0 || t.ends[0].expires.After(now) {
			break
		}
		t.drop(t.ends[0])
	}
	for (len(t.items) > t.cfg.MaxItems || t.bytes > t.cfg.MaxBytes) && len(t.items) > 0 {
		t.drop(t.recent.Back().Value.(*item))
	}
}

// drop removes an item; nil does nothing.
func (t *table) drop(it *item) {
	if it == nil {
		return
	}
	delete(t.items, it.id)
	heap.Remove(&t.ends, it.index)
	t.recent.Remove(it.use)
	t.bytes -= int64(it.size + len(it.id.name) + overhead)
}

// expiryHeap is a heap of items, the one that expires first on top.
type expiryHeap []*item

func (e expiryHeap) Len() int           { return len(e) }
func (e expiryHeap) Less(i, j int) bool { return e[i].expires.Before(e[j].expires) }
func (e expiryHeap) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

// Push implements heap.Interface.
func (e *expiryHeap) Push(x any) {
	it := x.(*item)
	it.index = len(*e)
	*e = append(*e, it)
}

// Pop implements heap.Interface.
func (e *expiryHeap) Pop() any {
	old := *e
	it := old[len(old)-1]
	old[len(old)-1] = nil
	it.index = -1
	*e = old[:len(old)-1]
	return it
}
