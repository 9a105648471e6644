package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/store"
)

// ownerTTL is how long the owner of a response or file is kept: as long as providers keep
// responses.
const ownerTTL = 30 * 24 * time.Hour

// ownerStore keeps the owner of each response and file, with its upstream and key, in the store.
// Ids are hashed. If the store does not answer in time, an id has no known owner.
type ownerStore struct {
	store   store.Store
	timeout time.Duration
}

var _ proxy.Owners = ownerStore{}

// ownerRecord is a stored ownership.
type ownerRecord struct {
	Owner    string `json:"o"`
	Upstream string `json:"u"`
	Key      string `json:"k,omitempty"`
}

// Claim implements proxy.Owners.
//
// An id belongs to its first owner, even if a server later returns it to others. A claim that
// reaches the shared store late does not replace an owner.
func (o ownerStore) Claim(ctx context.Context, m proxy.Ownership, ids ...string) {
	value, _ := json.Marshal(ownerRecord(m)) // strings
	had, known := o.read(ctx, ids)
	if !known {
		return // the ids have no known owner then
	}
	var entries []store.Entry
	var keys []string
	for i, id := range ids {
		if had[i].Owner == "" || had[i].Owner == m.Owner {
			keys = append(keys, o.key(id))
			entries = append(entries, store.Entry{Key: o.key(id), Value: value, TTL: ownerTTL, Once: had[i].Owner == ""})
		}
	}
	if len(entries) > 0 {
		_ = o.store.Set(ctx, entries...)
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		o.store.Flush(ctx, keys...)
	}
}

// Of implements proxy.Owners.
func (o ownerStore) Of(ctx context.Context, ids ...string) []proxy.Ownership {
	out, _ := o.read(ctx, ids)
	return out
}

// read returns the owners of ids; known is false if the store does not answer.
func (o ownerStore) read(ctx context.Context, ids []string) (out []proxy.Ownership, known bool) {
	out = make([]proxy.Ownership, len(ids))
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = o.key(id)
	}
	values, err := o.store.Get(ctx, keys...)
	if err != nil || len(values) != len(ids) {
		return out, false
	}
	for i, raw := range values {
		var v ownerRecord
		if json.Unmarshal(raw, &v) == nil {
			out[i] = proxy.Ownership(v)
		}
	}
	return out, true
}

func (ownerStore) key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "made:" + hex.EncodeToString(sum[:])
}
