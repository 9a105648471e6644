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
func (o owners) Claim(ctx context.Context, id string, m proxy.Ownership) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	value, err := json.Marshal(owned(m))
	if err != nil {
		return // strings always marshal
	}
	_ = o.store.Set(ctx, store.Entry{Key: o.key(id), Value: value, TTL: ownedFor}) // else nobody knows later on
}

// Of implements proxy.Owners.
func (o owners) Of(ctx context.Context, id string) (m proxy.Ownership, known bool) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	values, err := o.store.Get(ctx, o.key(id))
	var v owned
	if err != nil || len(values) != 1 || json.Unmarshal(values[0], &v) != nil {
		return m, false
	}
	return proxy.Ownership(v), v.Owner != ""
}

func (owners) key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "made:" + hex.EncodeToString(sum[:])
}
