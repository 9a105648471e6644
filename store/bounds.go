package store

import (
	"fmt"
	"time"
)

// The bounds of every store. They keep a caller's mistake, or a hostile value on
// a shared server, from exhausting a replica's memory.
const (
	// MaxKey is the size in bytes of the longest key, slot, board, field or log name.
	MaxKey = 512
	// MaxKeys is the number of keys or entries in one operation.
	MaxKeys = 1024
	// MaxValue is the size in bytes of the largest value of a key or ring slot.
	MaxValue = 1 << 20
	// MaxRing is the largest size of a ring, in slots.
	MaxRing = 64
	// MaxField is the size in bytes of the largest value on a board.
	MaxField = 16 << 10
	// MaxFields is the number of fields that a board keeps.
	MaxFields = 1024
	// MaxEntry is the size in bytes of the largest log entry.
	MaxEntry = 64 << 10
	// MaxLog is the largest size of a log, in entries.
	MaxLog = 1 << 14
	// MaxTail is the largest result of Tail in bytes.
	MaxTail = 8 << 20
	// MaxCharges is the number of charges in one operation.
	MaxCharges = 64
	// MaxAmount is the largest amount of a charge and the largest count of a meter.
	MaxAmount = 1 << 50
	// MaxHolders is the largest number of holders of a meter.
	MaxHolders = 1024
	// MaxTTL is the longest lifetime.
	MaxTTL = 366 * 24 * time.Hour
	// LogTTL is the lifetime of a log after its newest entry.
	LogTTL = 7 * 24 * time.Hour
)

// CheckKeys returns ErrInvalid for too many keys, and for an empty or too long one.
func CheckKeys(keys ...string) error {
	if len(keys) > MaxKeys {
		return fmt.Errorf("%w: %d keys at once, the limit is %d", ErrInvalid, len(keys), MaxKeys)
	}
	for _, k := range keys {
		if k == "" || len(k) > MaxKey {
			return fmt.Errorf("%w: a name of %d bytes, it must have 1 to %d", ErrInvalid, len(k), MaxKey)
		}
	}
	return nil
}

// CheckEntries returns ErrInvalid for entries out of bounds.
func CheckEntries(entries ...Entry) error {
	if len(entries) > MaxKeys {
		return fmt.Errorf("%w: %d entries at once, the limit is %d", ErrInvalid, len(entries), MaxKeys)
	}
	for _, e := range entries {
		if err := CheckKeys(e.Key); err != nil {
			return err
		}
		if err := checkSize(e.Value, MaxValue); err != nil {
			return err
		}
		if _, err := Lifetime(e.TTL); err != nil {
			return err
		}
	}
	return nil
}

// CheckPush returns ErrInvalid for arguments of Push out of bounds; Lifetime checks its ttl.
func CheckPush(key, slot string, value []byte, size int) error {
	if err := CheckKeys(key, slot); err != nil {
		return err
	}
	if size < 1 || size > MaxRing {
		return fmt.Errorf("%w: a ring of %d slots, it must have 1 to %d", ErrInvalid, size, MaxRing)
	}
	return checkSize(value, MaxValue)
}

// CheckField returns ErrInvalid for a field out of bounds.
func CheckField(board string, f Field) error {
	if err := CheckKeys(board, f.Name); err != nil {
		return err
	}
	if f.Until.IsZero() {
		return fmt.Errorf("%w: a field without an end", ErrInvalid)
	}
	return checkSize(f.Value, MaxField)
}

// CheckAppend returns ErrInvalid for arguments of Append out of bounds.
func CheckAppend(log string, entry []byte, size int) error {
	if err := CheckKeys(log); err != nil {
		return err
	}
	if size < 1 || size > MaxLog {
		return fmt.Errorf("%w: a log of %d entries, it must have 1 to %d", ErrInvalid, size, MaxLog)
	}
	return checkSize(entry, MaxEntry)
}

// Lifetime returns ttl, at most MaxTTL, or ErrInvalid for one of zero or less.
func Lifetime(ttl time.Duration) (time.Duration, error) {
	if ttl <= 0 {
		return 0, fmt.Errorf("%w: a lifetime of %v", ErrInvalid, ttl)
	}
	return min(ttl, MaxTTL), nil
}

// End returns until, at most MaxTTL after now.
func End(until, now time.Time) time.Time {
	if last := now.Add(MaxTTL); until.After(last) {
		return last
	}
	return until
}

func checkSize(b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("%w: a value of %d bytes, the limit is %d", ErrInvalid, len(b), limit)
	}
	return nil
}
