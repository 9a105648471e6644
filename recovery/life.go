package recovery

import (
	"sync/atomic"
	"time"
)

// Sign is a sign of life of an attempt; larger values are stronger evidence.
type Sign int32

// The signs of life.
const (
	SignNone   Sign = iota // nothing, or only a response head
	SignAlive              // comments, pings, a role: something keeps the connection open
	SignThinks             // a response that was created, an open item of reasoning
	SignWrites             // the model writes its answer, although no part of it can be shown yet
)

// Life records the strongest sign of life of one attempt, and when it gave the last one. The zero value is ready. Safe for
// concurrent use.
type Life struct {
	sign atomic.Int32
	last atomic.Int64 // in Unix nanoseconds
	lost atomic.Bool
}

// Show records a sign.
func (l *Life) Show(s Sign) {
	l.last.Store(time.Now().UnixNano())
	for old := l.sign.Load(); old < int32(s); old = l.sign.Load() {
		if l.sign.CompareAndSwap(old, int32(s)) {
			return
		}
	}
}

// Sign returns the strongest sign so far.
func (l *Life) Sign() Sign { return Sign(l.sign.Load()) }

// Silence returns the time since the last sign; very long if there was none.
func (l *Life) Silence() time.Duration { return time.Since(time.Unix(0, l.last.Load())) }

// Limits limit the time to an attempt's first token, by its strongest sign of life. Then another attempt starts beside it;
// 0 means never.
type Limits struct {
	Silent time.Duration // nothing
	Alive  time.Duration // signs of life
	Thinks time.Duration // open reasoning
	// Lost is the time after which an attempt is abandoned if there is evidence that it is lost.
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

// Lose records that another attempt has won, so that the client gets the other answer.
func (l *Life) Lose() { l.lost.Store(true) }

// Lost reports whether another attempt has won.
func (l *Life) Lost() bool { return l.lost.Load() }
