package fit_test

import (
	"context"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
)

// BenchmarkPrepare measures a request of 700 KB whose session has edits already, which are
// all made again.
func BenchmarkPrepare(b *testing.B) {
	for _, c := range []struct {
		name   string
		window int
		teller *fakeSummarizer
	}{{"tiers", 120_000, nil}, {"summary", 64_000, newFakeSummarizer()}, {"digest", 64_000, nil}} {
		b.Run(c.name, func(b *testing.B) {
			session := recorded(b)[0]
			f := fit.New(fit.Defaults(), fit.Parts{Meter: count.NewMeter()})
			defer f.Close(context.Background())
			r := &replayer{provider: newProvider(c.window), summarizer: c.teller, session: "s", fitter: f}
			r.send(b, session.body(b, len(session.Messages)))
			if len(r.edits) != 1 {
				b.Fatal("not fitted")
			}
			body := session.body(b, len(session.Messages))
			b.ReportAllocs()
			for b.Loop() {
				x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: body, Model: simModel, Mode: recovery.ModeAct},
					Caller:       recovery.Caller{Credential: "label"},
					Conversation: recovery.Conversation{Session: "s"},
					Candidates:   []recovery.Choice{{Candidate: recovery.Candidate{Target: recovery.Target{Upstream: "u", Model: simModel}}}}}
				if out := f.Prepared(context.Background(), x); out == nil || !out.Sticky {
					b.Fatal("not fitted again")
				}
			}
		})
	}
}
