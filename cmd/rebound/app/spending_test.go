//go:build unix

package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/store/storetest"
)

// With prices, an answer has its cost in a header. All replicas together sum up the daily cost of recovery, as a metric
// and at /rebound/spent.
func TestCost(t *testing.T) {
	t.Parallel()
	p := pair(t, slowStore(t, storetest.Redis(t)), `prices: {"*": {input: 1000, output: 1000}}`)
	cost := func(h http.Header) float64 {
		t.Helper()
		v, err := strconv.ParseFloat(h.Get("X-Rebound-Cost"), 64)
		if err != nil || v <= 0 {
			t.Errorf("X-Rebound-Cost: %q", h.Get("X-Rebound-Cost"))
		}
		return v
	}
	whole := p.one.must(chat("m", false, ""))
	used := gjson.GetBytes(whole.body, "usage.total_tokens").Float()
	if got := cost(whole.header); got < used/1000-1e-6 || got > used/1000+1e-6 {
		t.Errorf("%v tokens cost %v", used, got)
	}
	for _, model := range []string{"m", "flawed"} {
		for _, g := range []*gateway{p.one, p.two} {
			script(t, p.up, "flawed", "tool,args={}/ok")
			resp, err := g.open(t.Context(), chat(model, true, `"stream_options":{"include_usage":true},"tools":[`+
				`{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}],`))
			if err != nil {
				t.Fatal(err)
			}
			if r := read(resp); !r.ok() {
				t.Fatalf("%s: %v", model, r)
			}
			cost(resp.Trailer)

		}
	}
	eventually(t, 20*time.Second, "the day's sum has both replicas'", func() bool {
		sum := gjson.Get(p.one.admin(http.MethodGet, "/rebound/spent", ""), "spent.0")
		return sum.Get("day").Str == time.Now().UTC().Format(time.DateOnly) && sum.Get("keys.none.tokens").Float() > 0 && sum.Get("keys.none.money").Float() > 0
	})
	if m := p.one.metrics(); !strings.Contains(m, `rebound_recovery_spent_total{key="none"`) {
		t.Error("no metric tells what recovery cost")
	}
}
