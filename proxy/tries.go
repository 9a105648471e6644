package proxy

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// wrongToken is how long the answer to a wrong secret takes.
	wrongToken = time.Second
	// freeGuesses is how many wrong gateway keys of a peer are answered at once in a
	// minute: a program that was set up wrongly learns of it without delay.
	freeGuesses = 10
	// triesWindow is how long wrong secrets of a peer count, and maxPeers of how many
	// peers they are counted.
	triesWindow = time.Minute
	maxPeers    = 10_000
)

// tries slows down peers that guess a secret. Secrets are compared before, so that a
// right one is never slow, whoever else guesses. The zero value is ready. All methods
// are safe for concurrent use.
type tries struct {
	free int // wrong secrets of a peer in a window that are answered at once

	mu    sync.Mutex
	since time.Time
	peers map[netip.Prefix]int
}

// wrong is called with a request whose secret is wrong. It waits before it returns,
// unless the client leaves.
func (t *tries) wrong(r *http.Request) {
	if t.allows(peerOf(r), time.Now()) {
		return
	}
	recovery.Wait(r.Context(), wrongToken)
}

// allows counts a wrong secret and reports whether it may be answered at once.
func (t *tries) allows(peer netip.Prefix, now time.Time) bool {
	if t.free == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.since) >= triesWindow {
		t.since, t.peers = now, map[netip.Prefix]int{}
	}
	if n, known := t.peers[peer]; n >= t.free || !known && len(t.peers) >= maxPeers {
		return false
	}
	t.peers[peer]++
	return true
}

// peerOf returns the network that a request's connection comes from: an IPv4 address, or
// the 64 bits of an IPv6 address that one site has (RFC 4291, section 2.5.1).
func peerOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	peer, _ := addr.Prefix(bits) // the number of bits is right
	return peer
}

// isToken compares a secret with the one that is right, in constant time.
func isToken(given, token string) bool {
	return newKeyring([]ClientKey{{Value: token}}).find(given) == 0
}
