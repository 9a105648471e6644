package proxy_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// TestOutage: under steady traffic an outage of the primary is answered by the
// fallback, costs few probes, and ends by itself.
func TestOutage(t *testing.T) {
	t.Parallel()
	g := startScaled(t, models(map[string][]string{"m": {"default primary@503,for=3s/ok", "backup fallback@ok"}}))
	var wg sync.WaitGroup
	var mu sync.Mutex
	back := false
	begun := time.Now()
	ended := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return back
	}
	for n := 0; n < 400 && !ended(); n++ {
		time.Sleep(time.Until(begun.Add(time.Duration(n) * 50 * time.Millisecond)))
		wg.Go(func() {
			r := g.ask(context.Background(), "m", n%2 == 0, "")
			mu.Lock()
			defer mu.Unlock()
			if !r.complete() || r.text != upstreamtest.TextFor(r.model) {
				t.Errorf("request %d: %s", n, r)
			}
			back = back || r.model == "primary"
		})
	}
	wg.Wait()
	probes := 0
	for _, r := range g.up.Requests("primary") {
		if r.Status == 503 {
			probes++
		}
	}
	// Some 60 requests fall into the outage.
	if probes > 20 {
		t.Errorf("the primary was asked %d times while it was down", probes)
	}
	if !back {
		t.Error("the primary never answered again")
	}
}
