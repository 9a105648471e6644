package trajectory_test

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 0, 0}, {"a", "", 3, 1}, {"", "abc", 2, 3}, {"kitten", "sitting", 5, 3}, {"kitten", "sitting", 2, 3},
		{"raed", "read", 1, 1}, {"ab", "ba", 3, 1}, {"abcd", "badc", 3, 2}, {"abc", "abc", 0, 0}, {"abc", "abd", 0, 1},
	} {
		if got := trajectory.Distance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("%q, %q within %d: %d, want %d", c.a, c.b, c.limit, got, c.want)
		}
		if got := trajectory.Distance(c.b, c.a, c.limit); got != c.want {
			t.Errorf("%q, %q the other way round: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"read_file", "write_file", "list_dir"}
	for name, want := range map[string]string{"readFile": "read_file", "raed_file": "read_file", "list-dirs": "list_dir", "delete": "", "": "", "read_file": ""} {
		if got := trajectory.Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
