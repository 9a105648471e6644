package classify_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/hostiletest"
)

// TestWorkIsBounded: for any shape of a large error, the input of rules and facts is bounded.
func TestWorkIsBounded(t *testing.T) {
	families := append(hostiletest.Answers(), hostiletest.Family{Name: "headers", Make: func(n int) string {
		return `{"error":{"message":"x","headers":{` + strings.Repeat(`"x-ratelimit-reset":"1s",`, n/25) + `"a":1}}}`
	}}, hostiletest.Family{Name: "messages", Make: func(n int) string {
		list := make([]string, n/40)
		for i := range list {
			list[i] = `{"message":"it failed for ` + strconv.Itoa(i) + `"}`
		}
		return "[" + strings.Join(list, ",") + "]"
	}})
	for _, f := range families {
		if over := classify.Exceeds(recovery.Evidence{Status: 429, Body: []byte(f.Make(classify.MaxBody - 256)), Now: time.Unix(1_700_000_000, 0)}); over != "" {
			t.Errorf("%s: %s", f.Name, over)
		}
	}
}
