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

// ownedFor is how long it is remembered who made a response or a file: as long
// as providers keep responses.
const ownedFor = 30 * 24 * time.Hour

// owners keeps in the store who had what made, and where. Ids are hashed; without an
// answer of the store in time nobody knows.
type owners struct {
	store   store.Store
	timeout time.Duration
}

var _ proxy.Owners = owners{}

// owned is how an ownership is kept.
type owned struct {
	Owner    string `json:"o"`
	Upstream string `json:"u"`
	Key      string `json:"k,omitempty"`
}

// Claim implements proxy.Owners.
//
// An id belongs to whom had it first, whatever a server answers others with, also where the claim reaches the
// other replicas late: what is copied then leaves an owner that is there already.
func (o owners) Claim(ctx context.Context, m proxy.Ownership, ids ...string) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	value, err := json.Marshal(owned(m))
	if err != nil {
		return // strings always marshal
	}
	had, known := o.read(ctx, ids)
	if !known {
		return // nobody knows later on
	}
	var entries []store.Entry
	var keys []string
	for i, id := range ids {
		if had[i].Owner == "" || had[i].Owner == m.Owner {
			keys = append(keys, o.key(id))
			entries = append(entries, store.Entry{Key: o.key(id), Value: value, TTL: ownedFor, Once: had[i].Owner == ""})
		}
	}
	if len(entries) > 0 {
		_ = o.store.Set(ctx, entries...)
		o.store.Flush(ctx, keys...)
	}
}

// Of implements proxy.Owners.
func (o owners) Of(ctx context.Context, ids ...string) []proxy.Ownership {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	out, _ := o.read(ctx, ids)
	return out
}

// read is whose the ids are; known is false where the store does not say.
func (o owners) read(ctx context.Context, ids []string) (out []proxy.Ownership, known bool) {
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
		var v owned
		if json.Unmarshal(raw, &v) == nil {
			out[i] = proxy.Ownership(v)
		}
	}
	return out, true
}

func (owners) key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "made:" + hex.EncodeToString(sum[:])
}
