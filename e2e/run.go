package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Bench is what runs need: the scripted upstream, the gateway and the clients.
type Bench struct {
	Upstream *upstreamtest.Running
	Gateway  *Gateway // nil: straight only
	Clients  map[string]Client

	SkipStraight bool
}

// startEvery spreads the starts, so that what has a tight time limit is not in
// the queue of a busy machine.
const startEvery = 40 * time.Millisecond

// runAll runs everything in parallel and reports each run when it is done.
func (b *Bench) runAll(runs []*Run, done func(*Run)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, r := range runs {
		all.Go(func() {
			b.run(r)
			mu.Lock()
			defer mu.Unlock()
			done(r)
		})
		time.Sleep(startEvery)
	}
	all.Wait()
}

// run runs both legs and then the checks.
func (b *Bench) run(r *Run) {
	var legs sync.WaitGroup
	if !b.SkipStraight {
		legs.Go(func() { b.straight(r) })
	}
	if b.Gateway != nil {
		legs.Go(func() { b.through(r) })
	}
	legs.Wait()
	if !b.SkipStraight {
		r.judge("straight: ", &r.Straight, r.Case.Straight)
	}
	if b.Gateway != nil {
		r.judge("", &r.Through, append(r.Case.Through[:len(r.Case.Through):len(r.Case.Through)], wellFormed))
	}
}

// judge adds what is wrong with a leg to the run's failures.
func (r *Run) judge(prefix string, l *Leg, checks []Check) {
	if l.Err != nil {
		r.Failures = append(r.Failures, prefix+l.Err.Error())
		return
	}
	for _, c := range checks {
		err := c(r, l)
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				r.Failures = append(r.Failures, prefix+e.Error())
			}
		} else if err != nil {
			r.Failures = append(r.Failures, prefix+err.Error())
		}
	}
}

// straight sends the client to the fault itself.
func (b *Bench) straight(r *Run) {
	c := r.call()
	c.BaseURL, c.APIKey, c.Model = b.Upstream.URL()+"/v1", ClientKey, r.straightModel()
	if r.Case.Keys {
		c.APIKey = KeyA
	}
	if r.Case.Targets[0].On == "closed" {
		c.BaseURL = closedPort
	}
	wait := Time{patience, scaledPatience}
	if r.Case.Patience != (Time{}) {
		wait = r.Case.Patience
	}
	c.GiveUpMS = r.Pace.of(wait).Milliseconds()
	b.leg(r, &r.Straight, c)
	r.Straight.Records = [][]upstreamtest.Record{b.records(c.Model)}
}

// through sends the client to the gateway.
func (b *Bench) through(r *Run) {
	c := r.call()
	c.BaseURL, c.APIKey, c.Model = b.Gateway.URL+"/v1", ClientKey, r.key()
	c.GiveUpMS = throughLimit.Milliseconds()
	b.leg(r, &r.Through, c)
	if wait := r.Pace.of(r.Case.After); wait > 0 {
		time.Sleep(wait)
	}
	for i := range r.Case.Targets {
		model := r.target(i)
		// What lost a race is broken off a moment after the answer.
		for end := time.Now().Add(1500 * time.Millisecond); b.busy(model) && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		r.Through.Records = append(r.Through.Records, b.records(model))
	}
}

// leg makes a case's requests, one after another.
func (b *Bench) leg(r *Run, l *Leg, c Call) {
	client := b.Clients[r.Client]
	for i := range max(r.Case.Times, 1) {
		if i > 0 {
			time.Sleep(20 * time.Millisecond) // answers tell when they began in milliseconds
		}
		a, err := client.Do(c)
		if err != nil {
			l.Err = fmt.Errorf("the client: %w", err)
			return
		}
		l.Answers = append(l.Answers, a)
	}
	if len(l.Answers) == 0 {
		l.Err = errors.New("no request was made")
	}
}

func (b *Bench) records(model string) []upstreamtest.Record {
	return b.Upstream.Requests(model)
}

func (b *Bench) busy(model string) bool {
	for _, rec := range b.records(model) {
		if rec.Finished.IsZero() {
			return true
		}
	}
	return false
}
