package storetest

import (
	"sync/atomic"
	"testing"
	"time"
)

// Hung is a time that an operation whose limit is far smaller never takes, however busy
// the machine is, and that it exceeds without that limit: the client library's own are
// three and five seconds, and it tries again.
const Hung = 5 * time.Second

// Stalls watches how long this machine keeps runnable goroutines waiting. The
// returned function ends the watch and tells the longest delay, which a test of
// time bounds adds to its limit: what the machine did to the test is not the
// fault of what is tested.
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
