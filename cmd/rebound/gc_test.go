package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGCPace(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 3 << 20: 800, 12 << 20: 200, 24 << 20: 100, 48 << 20: 50, 1 << 30: 50} {
		if p := gcPace(live); p != want {
			t.Errorf("%d live bytes: %d %%, not %d", live, p, want)
		}
	}
}

// GOGC follows the live heap in both directions.
func TestTuneGC(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	tuneGC(func(string) (string, bool) { return "", false })
	pace := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	settles := func(want func(int) bool) bool {
		for range 200 {
			runtime.GC()
			if want(pace()) {
				return true
			}
			time.Sleep(5 * time.Millisecond)
		}
		return false
	}
	big := make([]byte, 200<<20)
	if !settles(func(p int) bool { return p == gcLeast }) {
		t.Errorf("%d %% with a large live heap", pace())
	}
	runtime.KeepAlive(big)
	big = nil
	if !settles(func(p int) bool { return p > gcLeast }) {
		t.Errorf("%d %% with a small live heap", pace())
	}
}

func TestTuneGCLeavesTheEnvironment(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	tuneGC(func(name string) (string, bool) { return "77", name == "GOGC" })
	runtime.GC()
	if p := debug.SetGCPercent(77); p != 77 {
		t.Errorf("%d %%", p)
	}
}
