package fit

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Replica returns one replica's view of a store that several share.
func Replica(t testing.TB, server store.Store) *store.Shared {
	s := store.NewShared(noClose{server}, newFakeStore(), store.SharedConfig{}, nil)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// noClose is a store that other replicas still use after one closes it.
type noClose struct{ store.Store }

func (noClose) Close() error { return nil }

// Prepared returns the request that the first attempt sends instead of the client's bytes, nil
// for those.
func (f *Fitter) Prepared(ctx context.Context, x *recovery.Exchange) *recovery.Fitted {
	before := x.Fitted
	defer func() { x.Fitted = before }()
	x.Fitted = nil
	_ = f.Prepare(ctx, x)
	return x.Fitted
}

// MayNeedFitting reports whether there may be anything to fit before the first attempt.
func (f *Fitter) MayNeedFitting(x *recovery.Exchange) bool {
	return f.applies(x) && (&draft{fitter: f, x: x}).mayNeedFitting()
}

// fitting returns the exchange's Fitting, and creates it if the stage has not run.
func (f *Fitter) fitting(x *recovery.Exchange) recovery.Fitting {
	if x.Fitting == nil {
		x.Fitting = &draft{fitter: f, x: x}
	}
	return x.Fitting
}

// Fit, Commit and Learn call the exchange's Fitting.
func (f *Fitter) Fit(ctx context.Context, x *recovery.Exchange, c *recovery.Choice, fail *recovery.Failure) *recovery.Fitted {
	if !f.applies(x) {
		return nil
	}
	return f.fitting(x).Fit(ctx, c, fail)
}

func (f *Fitter) Commit(ctx context.Context, x *recovery.Exchange) {
	f.fitting(x).Commit()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if s, ok := f.memory.store.(store.Store); ok { // as the engine does
		s.Flush(ctx, x.Changed...)
	}
}

func (f *Fitter) Learn(x *recovery.Exchange, c *recovery.Choice, u recovery.Usage) {
	f.fitting(x).Learn(c, u)
}

// Flush waits until everything learned is stored.
func (f *Fitter) Flush() bool {
	done := make(chan struct{})
	if !f.memory.enqueue(func() { close(done) }) {
		return false
	}
	<-done
	if s, ok := f.memory.store.(store.Store); ok {
		var keys []string
		f.memory.sessions.Each(func(id string, _ *entry) bool {
			keys = append(keys, editsKey(id), reportKey(id))
			return true
		})
		s.Flush(context.Background(), keys...)
	}
	return true
}

// NewWindows returns windows that several fitters can share.
func NewWindows() Windows { return &fakeWindows{known: map[recovery.Target]int{}} }

// fakeWindows remembers windows for ever.
type fakeWindows struct {
	mu    sync.Mutex
	known map[recovery.Target]int
}

func (w *fakeWindows) Window(t recovery.Target) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[t.Keyless()]
}

func (w *fakeWindows) Overflowed(t recovery.Target) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.known[t.Keyless()]
	return ok
}

func (w *fakeWindows) LearnWindow(t recovery.Target, tokens int, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[t.Keyless()] = cmp.Or(tokens, w.known[t.Keyless()])
}

// LimitFrom and OutputReserve are for tests of the corpus and of sizes.
var (
	LimitFrom     = limitFrom
	OutputReserve = outputReserve
)

// Compressed reports whether a text is a replacement.
func Compressed(text string) bool { return isCompressed(text) }

// RaceEnabled is set under the race detector, which makes long replays too slow.
const RaceEnabled = raceEnabled
