package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Vault keeps values under a secret and returns them only to callers with that secret. They are
// in the process and, if the vault has a store, there too, encrypted with a key derived from the
// secret. Memory in the process is bounded; the least recently used values go first. Safe for
// concurrent use.
type Vault struct {
	values  Values // nil: values are in the process only
	timeout time.Duration
	local   bool
	cache   *Cache[vaultName, vaultEntry]
}

// Values is the part of Store that a vault needs.
type Values interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...Entry) error
	Delete(ctx context.Context, keys ...string) error
	// Flush waits until other processes can read the values, or until ctx ends.
	Flush(ctx context.Context, keys ...string)
}

// vaultName is the hash of a secret and a key; it names their value.
type vaultName [sha256.Size]byte

type vaultEntry struct {
	value []byte
	until time.Time
}

const (
	vaultPurpose = "rebound vault v1"
	// vaultOverhead is an estimate of the bytes in the process that a value takes besides its own.
	vaultOverhead = 256
	// sealOverhead is an upper limit of the bytes that encryption adds.
	sealOverhead = 64
)

// NewVault returns a vault that keeps at most limit bytes in the process and waits for the store no
// longer than timeout. values is nil without a store; local means that no other process needs the values.
func NewVault(values Values, timeout time.Duration, limit int, local bool) *Vault {
	return &Vault{values: values, timeout: timeout, local: local, cache: NewCache[vaultName, vaultEntry](limit)}
}

// Holds reports whether a later Get, in any process, would find a value of size bytes.
func (v *Vault) Holds(secret string, size int) bool {
	if v.local {
		return size+vaultOverhead <= v.cache.max/4
	}
	return v.values != nil && secret != "" && size+sealOverhead <= MaxValue
}

// Put keeps values, each for its lifetime, in place of earlier ones. It waits for the store.
func (v *Vault) Put(ctx context.Context, secret string, list ...Entry) {
	var sealed []Entry
	var keys []string
	for _, e := range list {
		name := vaultNameOf(secret, e.Key)
		v.cache.Put(name, vaultEntry{e.Value, time.Now().Add(e.TTL)}, len(e.Value)+vaultOverhead)
		if !v.inStore(secret) || len(e.Value)+sealOverhead > MaxValue {
			continue
		}
		aead, err := Cipher([]byte(secret), vaultPurpose)
		if err != nil {
			return
		}
		keys = append(keys, name.key())
		sealed = append(sealed, Entry{Key: name.key(), Value: aead.Seal(nil, nil, e.Value, name[:]), TTL: e.TTL})
	}
	if len(sealed) > 0 {
		ctx, cancel := context.WithTimeout(ctx, v.timeout)
		defer cancel()
		_ = v.values.Set(ctx, sealed...) // the store logs its own failures, and this process has the values
		v.values.Flush(ctx, keys...)
	}
}

// Get returns the values of keys in order; nil for a missing one.
func (v *Vault) Get(ctx context.Context, secret string, keys ...string) [][]byte {
	out := make([][]byte, len(keys))
	var names []vaultName
	var missing []string
	var at []int
	for i, key := range keys {
		name := vaultNameOf(secret, key)
		if h, ok := v.cache.Get(name); ok {
			if time.Now().Before(h.until) {
				out[i] = h.value
				continue
			}
			v.cache.Delete(name)
		}
		names, missing, at = append(names, name), append(missing, name.key()), append(at, i)
	}
	if len(missing) == 0 || len(missing) > MaxKeys || !v.inStore(secret) {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	values, err := v.values.Get(ctx, missing...)
	if err != nil || len(values) != len(missing) {
		return out
	}
	aead, err := Cipher([]byte(secret), vaultPurpose)
	if err != nil {
		return out
	}
	for i, box := range values {
		if len(box) == 0 {
			continue
		}
		if plain, err := aead.Open([]byte{}, nil, box, names[i][:]); err == nil { // otherwise it was not sealed for this name
			out[at[i]] = plain
		}
	}
	return out
}

// Delete removes values.
func (v *Vault) Delete(ctx context.Context, secret string, keys ...string) {
	names := make([]string, len(keys))
	for i, key := range keys {
		name := vaultNameOf(secret, key)
		v.cache.Delete(name)
		names[i] = name.key()
	}
	if len(names) > 0 && v.inStore(secret) {
		ctx, cancel := context.WithTimeout(ctx, v.timeout)
		defer cancel()
		_ = v.values.Delete(ctx, names...) // on an error the values stay in the store until they expire
	}
}

// inStore reports whether the values of a secret are in the store: without a secret they are not.
func (v *Vault) inStore(secret string) bool { return v.values != nil && secret != "" }

func vaultNameOf(secret, key string) (name vaultName) {
	h := sha256.New()
	h.Write([]byte(vaultPurpose))
	for _, s := range [...]string{secret, key} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	h.Sum(name[:0])
	return name
}

func (n vaultName) key() string { return "vault/" + hex.EncodeToString(n[:]) }
