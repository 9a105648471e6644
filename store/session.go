package store

import (
	"context"
	"slices"
)

// Session reads what a store has of one conversation: all of it in one round trip, when the first value is asked for.
// The goroutine of one request uses it.
type Session struct {
	values Reader
	list   func() []string // the keys
	keys   []string
	read   [][]byte
	err    error
}

// Reader gets values; see [Store].
type Reader interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
}

// NewSession returns a session that has read nothing yet. list names all its keys.
func NewSession(values Reader, list func() []string) *Session {
	return &Session{values: values, list: list}
}

// Get returns values as they were when the first was asked for. The store is asked for what is not the session's.
func (s *Session) Get(ctx context.Context, keys ...string) ([][]byte, error) {
	if s.keys == nil {
		s.keys = s.list()
		s.read, s.err = s.values.Get(ctx, s.keys...)
	}
	out := make([][]byte, len(keys))
	for i, k := range keys {
		at := slices.Index(s.keys, k)
		if at < 0 {
			return s.values.Get(ctx, keys...)
		}
		if s.err == nil {
			out[i] = s.read[at]
		}
	}
	return out, s.err
}
