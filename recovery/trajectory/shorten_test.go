package trajectory_test

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 4, "äöüß"}, {"äöüß", 3, "äö…"}, {"", 3, ""}, {"a\xff\xfeb", 3, "a\uFFFDb"}} {
		if got := trajectory.Shorten(c.text, c.n); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
