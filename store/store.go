package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors of stores, for errors.Is: they are returned wrapped.
var (
	// ErrUnavailable means that the store's server did not answer in time.
	// Callers go on without the store.
	ErrUnavailable = errors.New("store unavailable")
	// ErrBusy is an ErrUnavailable with another cause: the store's own limit on
	// concurrent operations was reached, and the server was not asked.
	ErrBusy = fmt.Errorf("%w: too many operations at once", ErrUnavailable)
	// ErrInvalid is returned for arguments out of bounds. Nothing was changed.
	ErrInvalid = errors.New("invalid store operation")
	// ErrClosed is returned by operations after Close.
	ErrClosed = errors.New("store closed")
)

// Store keeps small values with a lifetime, accounts of meters, rings, boards
// and bounded logs. It does not interpret them.
//
// Values, accounts, rings, boards and logs have separate names: a value and a
// ring may share a key. Operations are atomic per key and safe for concurrent
// use. They return promptly once ctx ends; an error then wraps ErrUnavailable
// or the context's error. Arguments out of bounds (MaxKey, MaxValue and so on)
// are ErrInvalid. The store and its callers may keep and share slices: nobody
// may modify one that was passed in or returned.
//
// Data on a server that is malformed or too large is treated as absent.
type Store interface {
	// Get returns the values of keys in order: nil for a missing value, and a
	// non-nil empty slice for an empty one. One round trip.
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	// Set replaces values, each with its lifetime. One round trip; atomic per
	// entry, not together. As everywhere, a lifetime of zero or less is invalid,
	// and a longer one than MaxTTL is shortened.
	Set(ctx context.Context, entries ...Entry) error
	// Flush waits until other processes can read the values that were set, or until ctx ends. Only Shared has to wait.
	Flush(ctx context.Context, keys ...string)
	// Delete removes the value and the ring of each key; a missing one is no error.
	Delete(ctx context.Context, keys ...string) error
	// Charge charges all amounts, or none if one exceeds its limit; atomic over
	// all accounts. One round trip. One call may charge a meter only once. Time
	// is the caller's: the clocks of replicas should agree to about a second.
	Charge(ctx context.Context, charges ...Charge) (Charged, error)
	// Push puts value into the ring at key under slot, keeps the newest size
	// slots, restarts the ring's lifetime, and returns the ring, oldest first. An
	// existing slot is replaced in place, so that repeating a Push is harmless.
	Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error)

	// Post puts a field on a board: a small map that every replica reads whole.
	// With max, an existing field that ends later than the new one stays
	// (cool-downs only grow). A board keeps MaxFields fields; a further one
	// replaces the one that ends first. Until is absolute: the clocks of replicas
	// should agree to about a second. It may be rounded down to microseconds.
	Post(ctx context.Context, board string, f Field, max bool) error
	// Remove removes a field from a board.
	Remove(ctx context.Context, board, field string) error
	// Board returns the fields of a board that have not ended, in no particular order.
	Board(ctx context.Context, board string) ([]Field, error)

	// Append adds an entry to a log and drops the oldest beyond size entries. A
	// log expires LogTTL after its newest entry.
	Append(ctx context.Context, log string, entry []byte, size int) error
	// Tail returns the newest n entries, oldest first; fewer if they would exceed
	// MaxTail bytes together.
	Tail(ctx context.Context, log string, n int) ([][]byte, error)

	// Ping reports whether the store answers and accepts writes.
	Ping(ctx context.Context) error
	// Close releases everything. Operations after Close fail.
	Close() error
}

// Entry is one value for Set.
type Entry struct {
	Key   string
	Value []byte
	TTL   time.Duration
	// Once leaves an existing value as it is.
	Once bool
}

// Field is one entry of a board. It ends at Until.
type Field struct {
	Name  string
	Value []byte
	Until time.Time
}

// Alive reports whether the field has not ended at now.
func (f Field) Alive(now time.Time) bool { return f.Until.After(now) }

// Soonest returns the name of the field that ends first, "" if there are no fields.
func Soonest(fields map[string]Field) string {
	var first string
	var end time.Time
	for name, f := range fields {
		if first == "" || f.Until.Before(end) {
			first, end = name, f.Until
		}
	}
	return first
}
