package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/rebound-llm/rebound/e2e/bench/load"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

type silent struct{}

func (silent) Observe(recovery.Event) {}

// BenchmarkHealthy is what the stage costs a request of the load that the
// gateway is measured with, an agent at work with which nothing is wrong, and the
// same where a shell printed what the files contain.
func BenchmarkHealthy(b *testing.B) {
	for _, kb := range []int{1, 10, 100, 1000} {
		read := load.Bodies("m", kb<<10, false, 7)
		var ran [][]byte
		for _, raw := range read {
			raw = bytes.ReplaceAll(raw, []byte(`read_file`), []byte(`bash`))
			ran = append(ran, bytes.ReplaceAll(raw, []byte(`{\"path\":\"`), []byte(`{\"command\":\"make -C `)))
		}
		benchmarkHealthy(b, fmt.Sprintf("%dKB", kb), read)
		benchmarkHealthy(b, fmt.Sprintf("%dKB-shell", kb), ran)
	}
}

func benchmarkHealthy(b *testing.B, name string, raw [][]byte) {
	b.Run(name, func(b *testing.B) {
		bodies := make([]*transcript.Body, len(raw))
		for i := range raw {
			bodies[i] = parse(b, raw[i])
			bodies[i].Messages() // any step needs those
		}
		s := inspect.NewStage(inspect.Defaults(), inspect.RulesForTests(), silent{})
		x := &recovery.Exchange{Request: recovery.Request{Mode: recovery.ModeAct}, Conversation: recovery.Conversation{Session: "s"}}
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			x.Body, x.Results, x.Loops, x.Turn = bodies[n%len(bodies)], nil, nil, recovery.Turn{}
			if err := s.Prepare(context.Background(), x); err != nil {
				b.Fatal(err)
			}
		}
		if len(x.Results) == 0 || x.Results[0].Failed || x.Loops != nil {
			b.Fatalf("%+v, %+v", x.Results, x.Loops)
		}
	})
}
