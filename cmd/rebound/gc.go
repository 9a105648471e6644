package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/rebound-llm/rebound/configs"
)

// The heap may grow to nine times what lives, a fifth of the CPU less than with
// Go's default of two times and a twentieth less than with five (measured), as
// long as that is no more than gcSlack: with thousands of open streams much lives.
// The runtime lets any heap grow to eight times 4 MiB first.
const (
	gcPercent = 800
	gcSlack   = 24 << 20 // bytes
	gcLeast   = 50       // percent

	startPercent = 25 // while the rules are read
)

// collectOften keeps the heap dense until tuneGC is called. Reading the rules leaves
// garbage between what lives: an idle gateway then has 12 MB less (measured).
func collectOften(env configs.Env) {
	if _, set := env("GOGC"); !set {
		debug.SetGCPercent(startPercent)
	}
}

// tuneGC sets the collector's pace after every collection, unless the
// environment sets it.
func tuneGC(env configs.Env) {
	if _, set := env("GOGC"); set {
		return
	}
	debug.SetGCPercent(gcPercent)
	t := &gcTuner{percent: gcPercent, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	t.afterNext()
}

// gcTuner follows the live heap. Its methods run one after the other, in the
// goroutine of cleanups.
type gcTuner struct {
	percent int
	live    []metrics.Sample
}

// afterNext tunes after the next collection: an object that nobody has is gone by then.
func (t *gcTuner) afterNext() {
	type mark struct{ _ *byte }
	runtime.AddCleanup(&mark{}, func(t *gcTuner) {
		t.tune()
		t.afterNext()
	}, t)
}

func (t *gcTuner) tune() {
	metrics.Read(t.live)
	// Setting it stops the world for a moment: small changes are not worth that.
	p := gcPace(t.live[0].Value.Uint64())
	if 10*p < 9*t.percent || 10*p > 11*t.percent || p != t.percent && (p == gcPercent || p == gcLeast) {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPace is the growth, in percent, that is allowed for so many live bytes.
func gcPace(live uint64) int {
	return int(min(gcPercent, max(gcLeast, gcSlack*100/max(live, 1))))
}
