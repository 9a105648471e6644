package hostiletest

import (
	"runtime"
	"testing"
)

// Sizes of the input that Linear compares, in bytes.
const (
	small = 64 << 10
	four  = 4 * small
)

// times is how much memory a request may take for each of its bytes, in bytes.
const times = 8

// slack is what the most messages and calls that are accepted take, in bytes.
const slack = 12 << 20

// Linear runs a reader over families at two sizes, and fails where what it
// allocates is many times the input and grows faster than it. prepare gets the input and returns what
// is measured, nil where the input is refused before. A reader whose time explodes
// does not come back.
func Linear(t *testing.T, families []Family, prepare func(input string) func()) {
	t.Helper()
	for _, f := range families {
		var took, sizes [2]uint64
		refused := false
		for i, n := range [...]int{small, four} {
			input := f.Make(n)
			run := prepare(input)
			sizes[i] = uint64(len(input))
			if run == nil {
				refused = true
				break
			}
			run() // what is made once does not count
			took[i] = allocated(run)
		}
		if !refused && took[1] > 6*took[0]+slack && took[1] > times*sizes[1]+slack {
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
