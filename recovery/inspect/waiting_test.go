package inspect

import (
	"fmt"
	"strings"
	"testing"
)

// A call whose result changes by itself may be made again; what has come to its end is not waited for.
func TestChangingAndSettled(t *testing.T) {
	run := func(results ...string) string {
		var b strings.Builder
		for _, r := range results {
			fmt.Fprintf(&b, "! bash {\"command\":\"pytest -q t.py | tail -1\"}\n= %s\n", r)
		}
		return b.String()
	}
	poll := func(result string) string {
		return strings.Repeat("! bash {\"command\":\"sleep 30; curl -s localhost/jobs/1\"}\n= "+result+"\n", 3)
	}
	for _, c := range []struct{ name, text, want string }{
		{"flaky", run("1 failed, a", "1 failed, b", "passed", "passed", "passed"), ""},
		{"flaky, then steady", run("1 failed, a", "1 failed, b", "passed", "passed", "passed", "passed"), "same_result 4 [bash]"},
		{"steady", run("passed", "passed"), "same_result 2 [bash]"},
		{"running", poll(`{"state":"running"}`), ""},
		{"failed", poll(`{"job":"b9","state":"failed"}`), "same_result 3 [bash]"},
		{"some done", poll(`[{"state":"completed"},{"state":"running"}]`), ""},
		{"a container that ended", poll(`web   Exited (1) 3 minutes ago`), "same_result 3 [bash]"},
	} {
		got := ""
		if loops := Loops(script(t, c.text)); len(loops) > 0 {
			got = fmt.Sprintf("%s %d %v", loops[0].Kind, loops[0].Count, loops[0].Tools)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
