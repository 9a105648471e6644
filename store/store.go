package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors that callers tell apart; all arrive wrapped.
var (
	// ErrUnavailable is returned by every operation of a store whose server
	// cannot be reached in time. Callers go on without the store.
	ErrUnavailable = errors.New("store unavailable")
	// ErrBusy is an ErrUnavailable that says nothing about the server: the
	// store's own limit on concurrent operations was reached.
	ErrBusy = fmt.Errorf("%w: too many operations at once", ErrUnavailable)
	// ErrInvalid is returned for arguments outside the bounds below. Nothing was changed.
	ErrInvalid = errors.New("invalid store operation")
	// ErrClosed is returned by operations after Close.
	ErrClosed = errors.New("store closed")
)

// Store keeps small values with a lifetime, meters, rings, boards and bounded
// logs. It knows nothing of what it keeps.
//
// Values, accounts, rings, boards and logs have separate names: a value and a
// ring may share a key. Operations are atomic per key and safe for concurrent
// use. They return promptly once ctx ends, then with an error that wraps
// ErrUnavailable or the context's. Arguments are bounded (MaxKey, MaxValue and
// so on); what is out of bounds is an ErrInvalid. Slices may be kept and shared:
// they must not be modified after they were passed in or handed out.
//
// What is malformed in a store's server, or too large, is treated as absent.
type Store interface {
	// Get returns the values of keys in order; nil where there is none, and a
	// non-nil empty slice for an empty value. One round trip.
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	// Set replaces values, each with its lifetime. One round trip; atomic per
	// entry, not together. A lifetime of zero or less is invalid, one beyond
	// MaxTTL is shortened; the same holds for all lifetimes.
	Set(ctx context.Context, entries ...Entry) error
	// Flush waits until other processes find values that were set, for no longer than ctx. Of most stores they do at once.
	Flush(ctx context.Context, keys ...string)
	// Delete removes the value and the ring of each key; missing ones are no error.
	Delete(ctx context.Context, keys ...string) error
	// Charge charges all amounts, or none if one is beyond its limit; atomic over
	// all accounts. One round trip. Each meter may be charged once. The caller's
	// clock counts: those of replicas should agree to about a second.
	Charge(ctx context.Context, charges ...Charge) (Charged, error)
	// Push puts value into the ring at key under slot, keeping the newest size
	// slots, starts its lifetime anew, and returns the ring, oldest first. A slot
	// that is already in the ring is replaced in place: pushing twice is once.
	Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error)

	// Post puts a field on a board: a small map that every replica reads whole.
	// With max, an existing field whose value ends later than the new one stays
	// (cool-downs only ever grow). A board keeps MaxFields fields; beyond, the
	// one that ends first makes room. Until is absolute: the clocks of replicas
	// should agree to about a second. It may be rounded down to microseconds.
	Post(ctx context.Context, board string, f Field, max bool) error
	// Remove takes a field off a board.
	Remove(ctx context.Context, board, field string) error
	// Board returns the living fields of a board, in no particular order.
	Board(ctx context.Context, board string) ([]Field, error)

	// Append adds an entry to a log of at most size entries. A log to which
	// nothing is appended for LogTTL is gone.
	Append(ctx context.Context, log string, entry []byte, size int) error
	// Tail returns the newest n entries, oldest first; fewer if they are together
	// larger than MaxTail bytes.
	Tail(ctx context.Context, log string, n int) ([][]byte, error)

	// Ping reports whether the store answers and takes writes.
	Ping(ctx context.Context) error
	// Close releases everything. Operations after Close fail.
	Close() error
}

// Entry is one value for Set.
type Entry struct {
	Key   string
	Value []byte
	TTL   time.Duration
	// Once leaves a value that is there already as it is.
	Once bool
}

// Field is one entry of a board. It is gone after Until.
type Field struct {
	Name  string
	Value []byte
	Until time.Time
}

// Alive tells whether the field still counts at a moment.
func (f Field) Alive(now time.Time) bool { return f.Until.After(now) }

// Soonest names the field that ends first, "" of none.
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
