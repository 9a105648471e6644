package app

import (
	"encoding/binary"
	"encoding/hex"
	"sync"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/recovery/session"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// identifier adapts package session to the edge.
type identifier struct{ conversations *session.Known }

func (i identifier) Identify(body *transcript.Body, credential, explicit string, hints []string) proxy.Identity {
	k := &known{in: session.Input{Body: body, Explicit: explicit, Hints: hints}}
	k.in.Credential = append(k.key[:0], credential...)
	k.session = i.conversations.Identify(k.in)
	return k
}

// usualKey is up to how many bytes most API keys have.
const usualKey = 64

// known is what a request is identified by, for what is asked of few requests.
type known struct {
	in      session.Input
	key     [usualKey]byte // room for the credential
	session string
	once    sync.Once
	aside   bool
}

// Session implements proxy.Identity.
func (k *known) Session() string { return k.session }

// Hint implements proxy.Identity.
func (k *known) Hint() string { return session.HintOf(k.in) }

// Side implements proxy.Identity. It may be called by several goroutines.
func (k *known) Side() bool {
	if k.session == "" {
		return false
	}
	k.once.Do(func() { k.aside = session.SideOf(k.in.Body) != session.SideNone })
	return k.aside
}

// Affinity implements proxy.Identity.
func (k *known) Affinity() uint64 { return session.Affinity(k.in) }

// Pin implements proxy.Identity.
func (k *known) Pin() string {
	if k.session == "" {
		return ""
	}
	turn := session.UserTurnOf(k.in)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], turn.Last)
	binary.BigEndian.PutUint64(b[8:], uint64(turn.Messages))
	return k.session + "/" + hex.EncodeToString(b[:])
}
