package breaker_test

import (
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

// BenchmarkSet is what a healthy request asks of the breakers: a look, a place,
// and giving it back.
func BenchmarkSet(b *testing.B) {
	m := store.NewMirror(memory.New(memory.Defaults()), []string{breaker.BoardBreakers, breaker.BoardCooldowns}, 0)
	defer m.Stop()
	s := breaker.NewSet(breaker.Defaults(), m, &recoverytest.Observer{})
	t := recovery.Target{Upstream: "default", Model: "gpt-4.1-mini", Key: "client-0123456789"}
	b.ReportAllocs()
	for b.Loop() {
		if !s.Check(t).Ready {
			b.Fatal("it is not ready")
		}
		ticket, _ := s.Begin(t, time.Now(), false, false)
		ticket.Place.Done(ticket, recovery.Outcome{Success: true})
	}
}
