package proxy

import (
	"strings"
	"testing"
)

// A credential has one label, whether it is remembered or made anew.
func TestLabels(t *testing.T) {
	var l labels
	usual, endless := "Bearer sk-1", "Bearer "+strings.Repeat("s", 1<<10)
	for _, c := range []string{usual, endless, "Bearer sk-2"} {
		if got := l.of(c); got != label(c) || got != l.of(c) || strings.Contains(got, "sk") {
			t.Errorf("%.12s is called %s, then %s; want %s", c, got, l.of(c), label(c))
		}
	}
	if l.of("") != "" || l.of(usual) == l.of(endless) {
		t.Error("labels do not tell credentials apart")
	}
	if n := testing.AllocsPerRun(100, func() { l.of(usual); l.of(endless) }); n != 0 {
		t.Errorf("the labels of known credentials cost %v allocations", n)
	}
}
