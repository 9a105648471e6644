package telemetry

import (
	"fmt"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Of requests that one client is refused for one reason, the history has one a minute, with their number; a flood from
// many addresses does not flush it.
func TestRefusals(t *testing.T) {
	var r refusals
	start := time.Now()
	refused := func(peer, rule string, after time.Duration) (count int, first bool) {
		ev := recovery.Event{Name: recovery.EventRequestDone, Time: start.Add(after), Status: 401, Rule: rule, Ending: recovery.Ending{Peer: peer}}
		first = r.first(&ev)
		return ev.Count, first
	}
	for _, step := range []struct {
		peer, rule string
		after      time.Duration
		count      int
		first      bool
	}{
		{"10.0.0.1", "invalid_gateway_key", 0, 1, true},
		{"10.0.0.1", "invalid_gateway_key", time.Second, 0, false},
		{"10.0.0.1", "key_concurrent", 2 * time.Second, 1, true},
		{"10.0.0.2", "invalid_gateway_key", 3 * time.Second, 1, true},
		{"10.0.0.1", "invalid_gateway_key", 59 * time.Second, 0, false},
		{"10.0.0.1", "invalid_gateway_key", time.Minute, 3, true},
		{"10.0.0.1", "invalid_gateway_key", 61 * time.Second, 0, false},
	} {
		if count, first := refused(step.peer, step.rule, step.after); count != step.count || first != step.first {
			t.Errorf("%s %s after %v: %d, %v", step.peer, step.rule, step.after, count, first)
		}
	}
	kept := 0
	for i := range 10_000 {
		if _, first := refused(fmt.Sprintf("10.1.%d.%d", i>>8, i&255), "invalid_gateway_key", 62*time.Second); first {
			kept++
		}
	}
	if kept > maxRefusals || len(r.counted) > maxRefusals+1 {
		t.Errorf("%d events in the history, %d refusals counted separately", kept, len(r.counted))
	}
}
