package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/store"
)

// ownedFor is how long it is remembered who made a response or a file: as long
// as providers keep responses.
const ownedFor = 30 * 24 * time.Hour

// owners keeps in the store who made what. Without an answer of the store in
// time nothing belongs to anybody.
type owners struct {
	store   store.Store
	timeout time.Duration
}

var _ proxy.Owners = owners{}

// Claim implements proxy.Owners.
func (o owners) Claim(ctx context.Context, owner, id string) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	_ = o.store.Set(ctx, store.Entry{Key: o.key(owner, id), Value: []byte{1}, TTL: ownedFor}) // then it is refused later on
}

// Owns implements proxy.Owners.
func (o owners) Owns(ctx context.Context, owner, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	values, err := o.store.Get(ctx, o.key(owner, id))
	return err == nil && len(values) == 1 && values[0] != nil
}

func (owners) key(owner, id string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + id))
	return "own:" + hex.EncodeToString(sum[:])
}
