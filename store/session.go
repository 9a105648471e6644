package store

import (
	"context"
	"slices"
)

// Session reads all values of one conversation from a store in one round trip, at the first Get. It is not safe for
// concurrent use.
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

// NewSession returns a Session that has read nothing yet. list returns all its keys.
func NewSession(values Reader, list func() []string) *Session {
	return &Session{values: values, list: list}
}

// Get returns the values of keys as they were at the first Get. If a key is not the session's, it reads all of keys
// from the store.
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
