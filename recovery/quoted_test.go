package recovery

import "testing"

// What answers to words of the request itself is for this exchange only; a refused value
// changes no other.
func TestPassingEdits(t *testing.T) {
	a, b := Edit{Field: "seed", Drop: true}, Edit{Field: "user", Drop: true}
	c := Choice{Edits: []Edit{a, b}, requestEdits: []Edit{a}}
	if got, _ := c.lasting(); len(got) != 1 || got[0] != b {
		t.Errorf("lasting %v", got)
	}
	if ed := (Edit{Field: "seed", Drop: true, Value: string(make([]byte, MaxValue+1))}); ed.Known() {
		t.Error("a value of any length is remembered")
	}
}
