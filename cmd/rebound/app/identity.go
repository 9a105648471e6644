package app

import (
	"encoding/binary"
	"encoding/hex"
	"sync"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/recovery/session"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// identifier implements proxy.Identifier with package session.
type identifier struct{ conversations *session.Known }

func (i identifier) Identify(body *transcript.Body, credential, explicit string, hints []string) proxy.Identity {
	k := &identity{in: session.Input{Body: body, Explicit: explicit, Hints: hints}}
	k.in.Credential = append(k.key[:0], credential...)
	k.session = i.conversations.Identify(k.in)
	return k
}

// usualKey is the size of most API keys, in bytes.
const usualKey = 64

// identity implements proxy.Identity. It computes what only few requests need on demand.
type identity struct {
	in      session.Input
	key     [usualKey]byte // buffer for the credential, to save an allocation
	session string
	once    sync.Once
	aside   bool
}

// Session implements proxy.Identity.
func (k *identity) Session() string { return k.session }

// Hint implements proxy.Identity.
func (k *identity) Hint() string { return session.HintOf(k.in) }

// Side implements proxy.Identity. It may be called by several goroutines.
func (k *identity) Side() bool {
	if k.session == "" {
		return false
	}
	k.once.Do(func() { k.aside = session.SideOf(k.in.Body) != session.SideNone })
	return k.aside
}

// Affinity implements proxy.Identity.
func (k *identity) Affinity() uint64 { return session.Affinity(k.in) }

// Pin implements proxy.Identity.
func (k *identity) Pin() string {
	if k.session == "" {
		return ""
	}
	turn := session.UserTurnOf(k.in)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], turn.Last)
	binary.BigEndian.PutUint64(b[8:], uint64(turn.Messages))
	return k.session + "/" + hex.EncodeToString(b[:])
}
