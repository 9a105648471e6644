package hostiletest

import (
	"runtime"
	"testing"
)

// Sizes of the inputs that Linear compares, in bytes.
const (
	smallSize = 64 << 10
	largeSize = 4 * smallSize
)

// maxAllocated limits the allocated bytes per byte of input.
const maxAllocated = 8

// slack is the memory for the maximum number of messages and calls, in bytes.
const slack = 12 << 20

// Linear runs a reader over families. It fails if the reader allocates many times the size of a large input and more
// than in proportion to a small one. prepare gets the input and returns the function to measure, or nil if the input is
// refused before. A reader with exponential time does not return.
func Linear(t *testing.T, families []Family, prepare func(input string) func()) {
	t.Helper()
	for _, f := range families {
		large := f.Make(largeSize)
		run := prepare(large)
		limit := uint64(maxAllocated*len(large) + slack)
		if run == nil || allocated(run) <= limit {
			continue
		}
		// What is allocated once does not count, and a garbage collection may empty a pool before a run.
		took := min(allocated(run), allocated(run), allocated(run))
		if took <= limit {
			continue
		}
		small := f.Make(smallSize)
		if run = prepare(small); run == nil {
			continue
		}
		if less := min(allocated(run), allocated(run), allocated(run)); took > 6*less+slack {
			t.Errorf("%s: %d bytes are allocated for an input of %d, %d for one of %d", f.Name, less, len(small), took, len(large))
		}
	}
}

func allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
