package proxy

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// wrongToken is the delay before the answer to a wrong secret.
	wrongToken = time.Second
	// freeGuesses is how many wrong gateway keys of a peer per triesWindow get an answer without
	// delay, so that a misconfigured program learns of its error at once.
	freeGuesses = 10
	// triesWindow is how long wrong secrets of a peer count; maxPeers limits how many peers are
	// counted.
	triesWindow = time.Minute
	maxPeers    = 10_000
)

// tries delays peers that guess a secret. Callers compare the secret first, so a right one is never
// delayed. The zero value is ready. All methods are safe for concurrent use.
type tries struct {
	free int // wrong secrets of a peer per window without delay

	mu    sync.Mutex
	since time.Time
	peers map[netip.Prefix]int
}

// wrong counts a wrong secret. It waits before it returns, unless the client leaves.
func (t *tries) wrong(r *http.Request) {
	if t.allows(peerOf(r), time.Now()) {
		return
	}
	recovery.Wait(r.Context(), wrongToken)
}

// allows counts a wrong secret and reports whether to answer it without delay.
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

// peerOf returns the network of a request's connection: an IPv4 address, or the 64-bit prefix of an
// IPv6 address (RFC 4291, section 2.5.1).
func peerOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	peer, _ := addr.Prefix(bits) // the number of bits is valid
	return peer
}

// isToken compares a secret with the right one in constant time.
func isToken(given, token string) bool {
	return newKeyring([]ClientKey{{Value: token}}).find(given) == 0
}
