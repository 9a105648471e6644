package trajectory_test

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// What shells and loggers put around a message does not make it another one; what the
// message says does.
func TestOutcomeOfFailures(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"/bin/bash: line 13128: cd: x: No such file", "/bin/bash: line 13143: cd: x: No such file", true},
		{"sh: 1: systemctl: not found", "sh: 2: systemctl: not found", true},
		{"2026-11-25 10:07:17,723 ERROR app: denied", "2026-11-25 10:08:17,823 ERROR app: denied", true},
		{"[4149] bind: Permission denied", "[4156] bind: Permission denied", true},
		{"failed after 3.2 s", "failed after 4.1 s", true},
		{"build.sh: line 12: x: not found", "build.sh: line 14: x: not found", false},
		{"a.py:12: error", "a.py:13: error", false},
		{"3 failed", "2 failed", false},
	} {
		if same := trajectory.Outcome(c.a, true) == trajectory.Outcome(c.b, true); same != c.same {
			t.Errorf("%q and %q: same is %v", c.a, c.b, same)
		}
	}
}
