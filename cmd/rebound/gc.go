package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/rebound-llm/rebound/configs"
)

// The heap may grow to nine times the live heap, as long as it grows by at most gcSlack:
// with thousands of open streams the live heap is large. Measured, this takes a fifth less
// CPU than Go's default of two times, and a twentieth less than five times. The runtime lets
// any heap grow to eight times 4 MiB first.
const (
	gcPercent = 800
	gcSlack   = 24 << 20 // bytes
	gcLeast   = 50       // percent
)

// tuneGC adjusts GOGC after each collection, unless the environment sets it.
func tuneGC(env configs.Env) {
	if _, set := env("GOGC"); set {
		return
	}
	debug.SetGCPercent(gcPercent)
	t := &gcTuner{percent: gcPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	t.afterNext()
}

// gcTuner adjusts GOGC to the live heap. Its methods run one at a time, in the runtime's
// goroutine for cleanups.
type gcTuner struct {
	percent int
	live    []metrics.Sample
}

// afterNext calls tune after the next collection, which frees an unreachable mark.
func (t *gcTuner) afterNext() {
	type mark struct{ _ *byte }
	runtime.AddCleanup(&mark{}, func(t *gcTuner) {
		t.tune()
		t.afterNext()
	}, t)
}

func (t *gcTuner) tune() {
	metrics.Read(t.live)
	// SetGCPercent stops the world for a moment, which a small change is not worth.
	p := gcPace(t.live[0].Value.Uint64())
	if 10*p < 9*t.percent || 10*p > 11*t.percent || p != t.percent && (p == gcPercent || p == gcLeast) {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPace returns GOGC, in percent, for a number of live bytes.
func gcPace(live uint64) int {
	return int(min(gcPercent, max(gcLeast, gcSlack*100/max(live, 1))))
}
