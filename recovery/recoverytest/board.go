package recoverytest

import (
	"sync"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Board holds boards in memory, without a store and without a goroutine. It is
// safe for concurrent use.
type Board struct {
	mu     sync.Mutex
	fields map[string]map[string]store.Field // by board and name
}

// NewBoard returns a Board without fields.
func NewBoard() *Board { return &Board{fields: map[string]map[string]store.Field{}} }

// Any reports whether a board has fields, expired ones included.
func (b *Board) Any(board string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fields[board]) > 0
}

// Lookup returns a field unless it has expired.
func (b *Board) Lookup(board, field string) (store.Field, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.fields[board][field]
	return f, ok && f.Alive(time.Now())
}

// Post sets a field of a board. With max set, it keeps an existing field that expires later.
func (b *Board) Post(board string, f store.Field, max bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fields[board] == nil {
		b.fields[board] = map[string]store.Field{}
	}
	if old, ok := b.fields[board][f.Name]; ok && max && old.Until.After(f.Until) {
		return
	}
	b.fields[board][f.Name] = f
}

// Each calls fn with the unexpired fields of a board until fn returns false. fn must
// not call other methods of b.
func (b *Board) Each(board string, fn func(store.Field) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.fields[board] {
		if f.Alive(time.Now()) && !fn(f) {
			return
		}
	}
}

// Remove removes a field from a board.
func (b *Board) Remove(board, field string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fields[board], field)
}
