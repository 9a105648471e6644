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

// Linear runs a reader over families at two sizes. It fails if the reader allocates many times the size of the
// input and more than in proportion to it. prepare gets the input and returns the function to measure, or nil if
// the input is refused before. A reader with exponential time does not return.
func Linear(t *testing.T, families []Family, prepare func(input string) func()) {
	t.Helper()
	for _, f := range families {
		var took, sizes [2]uint64
		refused := false
		for i, n := range [...]int{smallSize, largeSize} {
			input := f.Make(n)
			run := prepare(input)
			sizes[i] = uint64(len(input))
			if run == nil {
				refused = true
				break
			}
			run()                                                         // one-time allocations do not count
			took[i] = min(allocated(run), allocated(run), allocated(run)) // a garbage collection may empty a pool before one of them
		}
		if !refused && took[1] > 6*took[0]+slack && took[1] > maxAllocated*sizes[1]+slack {
			t.Errorf("%s: %d bytes are allocated for an input of %d, %d for one of %d", f.Name, took[0], sizes[0], took[1], sizes[1])
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
