package classify

import (
	"fmt"

	"github.com/rebound-llm/rebound/recovery"
)

// MaxBody is the number of bytes of an error that are read.
const MaxBody = maxBody

// Exceeds describes the view of some evidence if it exceeds the limits, or returns "".
func Exceeds(ev recovery.Evidence) string {
	v := read(ev, nil)
	numbers := scanNumbers(v.text)
	if v.nodes <= 2*maxNodes+1 && len(v.texts) <= 2*maxLayers && len(v.codes) <= maxLayers && len(v.text) <= maxText+8 && len(numbers) <= 40 &&
		len(v.hints.body) <= 32 && len(v.hints.resets) <= 64*maxDepth {
		return ""
	}
	return fmt.Sprintf("%d values, %d texts of %d bytes, %d codes, %d numbers, %d and %d hints", v.nodes, len(v.texts), len(v.text), len(v.codes),
		len(numbers), len(v.hints.body), len(v.hints.resets))
}

// Read returns the signal of the evidence, before the class is known.
func Read(ev recovery.Evidence) recovery.Signal {
	v := read(ev, nil)
	v.setRetryAfter(recovery.Unknown)
	return v.Signal
}
