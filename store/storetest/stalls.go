package storetest

import (
	"sync/atomic"
	"testing"
	"time"
)

// Hung tells an operation that ignores its time-out from one on a busy machine: with a
// time-out far below Hung, an operation takes longer only if the defaults of the client
// library, three and five seconds and a retry, apply instead.
const Hung = 5 * time.Second

// Stalls measures how long this machine keeps runnable goroutines waiting. The
// returned function ends the measurement and returns the longest delay. A test
// of a time limit adds it to the limit, so that a busy machine does not fail it.
func Stalls(t testing.TB) (end func() time.Duration) {
	t.Helper()
	const tick = time.Millisecond
	var longest atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(tick)
		defer timer.Stop()
		for {
			start := time.Now()
			timer.Reset(tick)
			select {
			case <-stop:
				return
			case <-timer.C:
			}
			if late := int64(time.Since(start) - tick); late > longest.Load() {
				longest.Store(late)
			}
		}
	}()
	var ended atomic.Bool
	end = func() time.Duration {
		if !ended.Swap(true) {
			close(stop)
			<-done
		}
		return time.Duration(longest.Load())
	}
	t.Cleanup(func() { end() })
	return end
}
