package recovery_test

import (
	"context"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/route"
	"github.com/rebound-llm/rebound/recovery/strategy"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

// atOnce is a sender and an answer that cost nothing.
type atOnce struct{}

func (atOnce) Send(context.Context, recovery.Attempt) (recovery.Answer, *recovery.Failure) {
	return atOnce{}, nil
}
func (atOnce) Deliver(context.Context) (recovery.Answer, *recovery.Failure) {
	return nil, nil
}
func (atOnce) Paused(context.Context) (*recovery.Pause, time.Duration) { return nil, 0 }
func (atOnce) Discard()                                                {}
func (atOnce) LongestPause() time.Duration                             { return 0 }
func (atOnce) Drain()                                                  {}
func (atOnce) Usage() (recovery.Usage, time.Duration)                  { return recovery.Usage{Input: 9}, time.Second }
func (atOnce) Finish() recovery.Finish                                 { return recovery.FinishStop }
func (atOnce) Observe(recovery.Event)                                  {}

// BenchmarkRun is what the engine itself costs a request that its first attempt
// answers, with the real route, breakers and knowledge around it.
func BenchmarkRun(b *testing.B) {
	m := store.NewMirror(memory.New(memory.Defaults()), []string{breaker.BoardBreakers, breaker.BoardCooldowns, learn.BoardFacts}, 0)
	defer m.Stop()
	facts := learn.NewFacts(m, time.Hour)
	e := &recovery.Engine{
		Config: recovery.Defaults(), Strategies: strategy.All(), Classifier: table, Knowledge: facts, Keeper: &route.Pins{}, Observer: atOnce{},
		Stages: []recovery.Stage{route.New([]route.Upstream{{Name: "default", Passthrough: true}}, nil, [transcript.APICount]string{"default"}, &route.Pins{})},
		Health: breaker.NewSet(breaker.Defaults(), m, atOnce{}),
		Pace:   learn.NewPace(learn.Defaults().FirstToken, recovery.Defaults().Parallel, facts),
	}
	body := exchange(b, plainBody, "").Body
	b.ReportAllocs()
	for b.Loop() {
		x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: body, Model: "m", Mode: recovery.ModeAct, Started: time.Now()},
			Caller: recovery.Caller{Credential: "client-1"}}
		if f, err := e.Run(b.Context(), x, atOnce{}); f != nil || err != nil {
			b.Fatal(f, err)
		}
	}
}
