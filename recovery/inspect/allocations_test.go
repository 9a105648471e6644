//go:build !race

package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// Rules that match no line, and texts without anything volatile, cost no allocation:
// a request may have thousands of failures. The race detector empties pools.
func TestNothingFoundAllocatesNothing(t *testing.T) {
	const text = "make: nothing to be done for a target that is not there"
	v := open(recovery.ToolResult{Tool: "bash", Content: text + "\nError: no such file or directory: a.txt"})
	v.split()
	for name, f := range map[string]func(){
		"rules":     func() { v.first(1, quotations); v.first(1, noError) },
		"normalise": func() { normalise(text) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
