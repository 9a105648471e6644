package recovery

import (
	"sync/atomic"
	"time"
)

// Sign is what an attempt has shown of itself, by how much it says.
type Sign int32

// The signs of life.
const (
	SignNone   Sign = iota // nothing, or no more than a response head
	SignAlive              // comments, pings, a role: something keeps the connection open
	SignThinks             // a response that was created, an open item of reasoning
	SignWrites             // the model writes, although nothing of it can be shown yet
)

// Life holds the strongest sign of one attempt. The zero value has seen none. Safe for concurrent use.
type Life struct {
	sign atomic.Int32
	lost atomic.Bool
}

// Show notes a sign.
func (l *Life) Show(s Sign) {
	for old := l.sign.Load(); old < int32(s); old = l.sign.Load() {
		if l.sign.CompareAndSwap(old, int32(s)) {
			return
		}
	}
}

// Sign returns the strongest sign so far.
func (l *Life) Sign() Sign { return Sign(l.sign.Load()) }

// Limits are how long an attempt may show no first token before another starts beside it, by what it
// has shown; 0 is never.
type Limits struct {
	Silent time.Duration // nothing
	Alive  time.Duration // signs of life
	Thinks time.Duration // open reasoning
	// Lost is the silence of one that is given up where there is evidence that it is lost.
	Lost time.Duration
}

// After returns the limit of an attempt that has shown s.
func (l Limits) After(s Sign) time.Duration {
	switch {
	case l.Silent <= 0 || s == SignWrites:
		return 0
	case s == SignThinks:
		return l.Thinks
	case s == SignAlive:
		return l.Alive
	}
	return l.Silent
}

// Lose notes that another attempt has won: what the client has by now says nothing of this one.
func (l *Life) Lose() { l.lost.Store(true) }

// Lost reports whether another attempt has won.
func (l *Life) Lost() bool { return l.lost.Load() }
