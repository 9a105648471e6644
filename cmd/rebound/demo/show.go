package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// The pauses between the requests of the show, between this and twice this.
const (
	betweenWell   = 120 * time.Millisecond
	betweenFaults = 700 * time.Millisecond
)

// show asks on, mostly well and now and then with a fault, until ctx ends: for who
// looks at the gateway's page meanwhile. Nothing is judged.
func (s *scene) show(ctx context.Context) {
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	a := demoAgent(&http.Client{Transport: transport}, s.gateway())
	list := faults()
	well := make(chan struct{})
	go func() {
		defer close(well)
		for recovery.Wait(ctx, spread(betweenWell)) {
			a.ask(ctx, &list[0], list[0].slug, list[0].text(list[0].answers()))
		}
	}()
	for recovery.Wait(ctx, spread(betweenFaults)) {
		f := &list[1+rand.IntN(len(list)-1)]
		if f.script(s.up) != nil {
			return // it was valid before
		}
		for i := range f.earlier {
			a.ask(ctx, f, f.before(i), f.text(f.before(i)))
		}
		a.ask(ctx, f, f.slug, f.text(f.answers()))
	}
	<-well
}

func spread(d time.Duration) time.Duration { return d + rand.N(d) }
