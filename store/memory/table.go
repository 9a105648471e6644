package memory

import (
	"container/heap"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// kind keeps the names of values, accounts, rings, boards and logs apart.
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

// holderKey is a holder's part of a meter.
type holderKey struct{ meter, holder string }

// heldAmount is how much that is, and until when.
type heldAmount struct {
	amount int64
	until  time.Time
}

// item is whatever is kept under one name.
type item struct {
	id      id
	size    int // of the content in bytes, as put was told
	expires time.Time

	value  []byte
	meters map[string]store.Tally
	held   map[holderKey]heldAmount
	ring   []entry
	fields map[string]store.Field
	log    [][]byte

	index        int   // in the heap
	newer, older *item // by use
}

const (
	// overhead is about what the bookkeeping of an item costs in bytes.
	overhead = 256
	// sweep is how many expired items one write removes at most. More than one,
	// so that writing outruns expiring.
	sweep = 8
)

// table is a bounded map, ordered by use and by end of life.
type table struct {
	cfg            Config
	items          map[id]*item
	ends           expiryHeap
	newest, oldest *item
	bytes          int64
}

func newTable(cfg Config) table { return table{cfg: cfg, items: map[id]*item{}} }

// maxItemBytes is how large a single ring or log may grow, in bytes: it must not push
// everything else out.
func (t *table) maxItemBytes() int64 { return t.cfg.MaxBytes / 4 }

// find returns the living item, marked as used, or nil.
func (t *table) find(k id, now time.Time) *item {
	it := t.items[k]
	if it == nil {
		return nil
	}
	if !it.expires.After(now) {
		t.drop(it)
		return nil
	}
	t.unlink(it)
	t.link(it)
	return it
}

// findOrNew returns the living item or a new one, which put adds.
func (t *table) findOrNew(k id, now time.Time) *item {
	if it := t.find(k, now); it != nil {
		return it
	}
	return &item{id: k, index: -1}
}

// put adds an item or accounts for its change, then makes room.
func (t *table) put(it *item, size int, end, now time.Time) {
	if it.index < 0 {
		t.items[it.id] = it
		t.bytes += int64(len(it.id.name) + overhead)
		t.link(it)
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
	for (len(t.items) > t.cfg.MaxItems || t.bytes > t.cfg.MaxBytes) && t.oldest != nil {
		t.drop(t.oldest)
	}
}

// drop forgets an item; nil is nothing.
func (t *table) drop(it *item) {
	if it == nil {
		return
	}
	delete(t.items, it.id)
	heap.Remove(&t.ends, it.index)
	t.unlink(it)
	t.bytes -= int64(it.size + len(it.id.name) + overhead)
}

func (t *table) link(it *item) {
	it.older, it.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = it
	} else {
		t.oldest = it
	}
	t.newest = it
}

func (t *table) unlink(it *item) {
	if it.newer != nil {
		it.newer.older = it.older
	} else {
		t.newest = it.older
	}
	if it.older != nil {
		it.older.newer = it.newer
	} else {
		t.oldest = it.newer
	}
	it.newer, it.older = nil, nil
}

// expiryHeap is a heap of items, the one that ends first on top.
type expiryHeap []*item

func (e expiryHeap) Len() int           { return len(e) }
func (e expiryHeap) Less(i, j int) bool { return e[i].expires.Before(e[j].expires) }
func (e expiryHeap) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

// Push is heap.Interface's.
func (e *expiryHeap) Push(x any) {
	it := x.(*item)
	it.index = len(*e)
	*e = append(*e, it)
}

// Pop is heap.Interface's.
func (e *expiryHeap) Pop() any {
	old := *e
	it := old[len(old)-1]
	old[len(old)-1] = nil
	it.index = -1
	*e = old[:len(old)-1]
	return it
}
