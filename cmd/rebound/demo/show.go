package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// The pauses of keepRunning are random, between these and twice these.
const (
	betweenWell   = 120 * time.Millisecond
	betweenFaults = 700 * time.Millisecond
)

// keepRunning sends requests until ctx ends, mostly healthy ones and some with a fault, so that
// the status page has something to show. It does not check the answers.
func (s *testbed) keepRunning(ctx context.Context) {
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	a := demoAgent(&http.Client{Transport: transport}, s.gateway())
	list := faults()
	well := make(chan struct{})
	go func() {
		defer close(well)
		for recovery.Wait(ctx, spread(betweenWell)) {
			a.ask(ctx, &list[0], list[0].slug, list[0].text(list[0].answerModel()))
		}
	}()
	for recovery.Wait(ctx, spread(betweenFaults)) {
		f := &list[1+rand.IntN(len(list)-1)]
		if f.script(s.up) != nil {
			return // cannot happen: start loaded the same scripts
		}
		for i := range f.earlier {
			a.ask(ctx, f, f.earlierModel(i), f.text(f.earlierModel(i)))
		}
		a.ask(ctx, f, f.slug, f.text(f.answerModel()))
	}
	<-well
}

func spread(d time.Duration) time.Duration { return d + rand.N(d) }
