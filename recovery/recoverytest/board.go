package recoverytest

import (
	"sync"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// Board is the boards of one process, without a store behind them and without
// a goroutine. Safe for concurrent use.
type Board struct {
	mu     sync.Mutex
	fields map[string]map[string]store.Field // by board and name
}

// NewBoard returns empty boards.
func NewBoard() *Board { return &Board{fields: map[string]map[string]store.Field{}} }

// Any reports whether a board may have fields.
func (b *Board) Any(board string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fields[board]) > 0
}

// Lookup returns a field that is still alive.
func (b *Board) Lookup(board, field string) (store.Field, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.fields[board][field]
	return f, ok && f.Alive(time.Now())
}

// Post puts a field on a board; with max, only if it lives longer than the one there.
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

// Each calls fn with the fields of a board that are alive, until it returns false.
func (b *Board) Each(board string, fn func(store.Field) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.fields[board] {
		if f.Alive(time.Now()) && !fn(f) {
			return
		}
	}
}

// Remove takes a field off a board.
func (b *Board) Remove(board, field string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fields[board], field)
}
