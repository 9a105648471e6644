package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Store is a store.Store in the process. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex
	table  table
	closed bool
}

var _ store.Store = (*Store)(nil)

// New returns an empty store. Bounds of zero or less mean the defaults.
func New(cfg Config) *Store {
	if cfg.MaxItems <= 0 {
		cfg.MaxItems = Defaults().MaxItems
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = Defaults().MaxBytes
	}
	return &Store{table: newTable(cfg)}
}

// lock takes the lock and returns the time, or an error without the lock: the given one, or if ctx has ended or the store
// is closed.
func (s *Store) lock(ctx context.Context, invalid error) (time.Time, error) {
	if err := cmp.Or(invalid, ctx.Err()); err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return time.Time{}, store.ErrClosed
	}
	return time.Now(), nil
}

// Get returns the values of keys in order.
func (s *Store) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	now, err := s.lock(ctx, store.CheckKeys(keys...))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := make([][]byte, len(keys))
	for i, k := range keys {
		if it := s.table.find(id{value, k}, now); it != nil {
			out[i] = it.value
		}
	}
	return out, nil
}

// Set replaces values.
func (s *Store) Set(ctx context.Context, entries ...store.Entry) error {
	now, err := s.lock(ctx, store.CheckEntries(entries...))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, e := range entries {
		ttl, _ := store.Lifetime(e.TTL)
		it := s.table.findOrNew(id{value, e.Key}, now)
		if e.Once && it.index >= 0 {
			continue
		}
		it.value = clone(e.Value)
		s.table.put(it, len(it.value), now.Add(ttl), now)
	}
	return nil
}

// Flush returns at once: no other process reads this store.
func (s *Store) Flush(context.Context, ...string) {}

// Delete removes the value and the ring of each key.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	_, err := s.lock(ctx, store.CheckKeys(keys...))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, k := range keys {
		for _, kind := range [...]kind{value, ring} {
			s.table.drop(s.table.items[id{kind, k}])
		}
	}
	return nil
}

// Push puts value into a ring and returns the ring.
func (s *Store) Push(ctx context.Context, key, slot string, v []byte, size int, ttl time.Duration) ([][]byte, error) {
	ttl, wrong := store.Lifetime(ttl)
	now, err := s.lock(ctx, cmp.Or(store.CheckPush(key, slot, v, size), wrong))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	it := s.table.findOrNew(id{ring, key}, now)
	found := false
	for i := range it.ring {
		if it.ring[i].name == slot {
			it.ring[i].value, found = clone(v), true
		}
	}
	if !found {
		it.ring = append(it.ring, entry{slot, clone(v)})
	}
	it.ring = it.ring[max(len(it.ring)-size, 0):]
	used := 0
	for i := range it.ring {
		used += it.ring[i].size()
	}
	for len(it.ring) > 1 && int64(used) > s.table.maxItemBytes() {
		used -= it.ring[0].size()
		it.ring = it.ring[1:]
	}
	it.ring = slices.Clone(it.ring)
	out := make([][]byte, len(it.ring))
	for i, e := range it.ring {
		out[i] = e.value
	}
	s.table.put(it, used, now.Add(ttl), now)
	return out, nil
}

// Post puts a field on a board.
func (s *Store) Post(ctx context.Context, board string, f store.Field, max bool) error {
	now, err := s.lock(ctx, store.CheckField(board, f))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	it := s.table.findOrNew(id{fields, board}, now)
	if it.fields == nil {
		it.fields = map[string]store.Field{}
	}
	for name, old := range it.fields {
		if !old.Alive(now) {
			delete(it.fields, name)
		}
	}
	if old, ok := it.fields[f.Name]; !ok || !max || !old.Until.After(f.Until) {
		f.Value, f.Until = clone(f.Value), store.End(f.Until, now)
		it.fields[f.Name] = f
	}
	for len(it.fields) > store.MaxFields {
		delete(it.fields, store.Soonest(it.fields))
	}
	s.putFields(it, now)
	return nil
}

// putFields updates the size and the end of a changed board.
func (s *Store) putFields(it *item, now time.Time) {
	end, size := now, 0
	for name, f := range it.fields {
		size += len(name) + len(f.Value) + overhead
		if f.Until.After(end) {
			end = f.Until
		}
	}
	s.table.put(it, size, end, now)
}

// Remove removes a field from a board.
func (s *Store) Remove(ctx context.Context, board, field string) error {
	now, err := s.lock(ctx, store.CheckKeys(board, field))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	if it := s.table.find(id{fields, board}, now); it != nil {
		delete(it.fields, field)
		s.putFields(it, now)
	}
	return nil
}

// Board returns the fields of a board that have not ended.
func (s *Store) Board(ctx context.Context, board string) ([]store.Field, error) {
	now, err := s.lock(ctx, store.CheckKeys(board))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	it := s.table.find(id{fields, board}, now)
	if it == nil {
		return nil, nil
	}
	out := make([]store.Field, 0, len(it.fields))
	for _, f := range it.fields {
		if f.Alive(now) {
			out = append(out, f)
		}
	}
	return out, nil
}

// Append adds an entry to a log.
func (s *Store) Append(ctx context.Context, name string, b []byte, size int) error {
	now, err := s.lock(ctx, store.CheckAppend(name, b, size))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	it := s.table.findOrNew(id{log, name}, now)
	b = clone(b)
	it.log = append(it.log, b)
	used := it.size + len(b) + overhead/2
	for len(it.log) > size || (len(it.log) > 1 && int64(used) > s.table.maxItemBytes()) {
		used -= len(it.log[0]) + overhead/2
		it.log[0] = nil // frees the entry: the array stays until append needs a larger one
		it.log = it.log[1:]
	}
	s.table.put(it, used, now.Add(store.LogTTL), now)
	return nil
}

// Tail returns the newest n entries of a log, oldest first.
func (s *Store) Tail(ctx context.Context, name string, n int) ([][]byte, error) {
	now, err := s.lock(ctx, store.CheckKeys(name))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	it := s.table.find(id{log, name}, now)
	if it == nil || n <= 0 {
		return nil, nil
	}
	first, size := len(it.log), 0
	for first > 0 && len(it.log)-first < n {
		if size += len(it.log[first-1]); size > store.MaxTail {
			break
		}
		first--
	}
	return append([][]byte(nil), it.log[first:]...), nil
}

// Ping reports whether the store is open.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.lock(ctx, nil)
	if err == nil {
		s.mu.Unlock()
	}
	return err
}

// Close drops everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.table = true, table{}
	return nil
}

// clone copies a value, so that a small one does not keep the large buffer that
// it was cut from in memory. It never returns nil.
func clone(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }
