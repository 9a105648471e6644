package route_test

import (
	"context"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/route"
)

// BenchmarkPrepare is the choice among targets, of one and of several.
func BenchmarkPrepare(b *testing.B) {
	up := []route.Upstream{{Name: "a", Passthrough: true}, {Name: "b", Keys: keys(4)}}
	tab := table(up, route.Target{Upstream: "b"}, route.Target{Upstream: "a"})
	for _, c := range []struct{ name, model string }{{"one", "unmapped"}, {"several", "m"}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x := recovery.Exchange{Request: recovery.Request{Model: c.model},
					Caller:       recovery.Caller{Credential: "client-1"},
					Conversation: recovery.Conversation{Affinity: 7, Pin: "s/1"}}
				if err := tab.Prepare(context.Background(), &x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
