package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// Outage is steady traffic while the primary target is away for a while: all
// clients in turn, ten requests a second, streamed and not.
type Outage struct {
	Pace    *Pace
	Clients []string

	before, away, after time.Duration
	// breakerDelay is how long the breaker may take to notice, returnLimit how soon traffic
	// must be on the primary again, probes how often it may be asked in between:
	// twice as often where there are upstreams for two formats.
	breakerDelay, returnLimit time.Duration
	probes                    int

	straight, through []reply
	primary           []upstreamtest.Record
	failures          []string
}

// reply is one answer of the steady traffic; at counts from the first request.
type reply struct {
	client string
	mode   Mode
	at     time.Duration
	Answer
}

const requestsASecond = 10

func newOutage(pace *Pace, clients []string) *Outage {
	o := &Outage{
		Pace: pace, Clients: clients,
		before: 5 * time.Second, away: 60 * time.Second, after: 40 * time.Second,
		breakerDelay: 15 * time.Second, returnLimit: 30 * time.Second, probes: 10,
	}
	if pace.Scaled {
		o.before, o.away, o.after = 3*time.Second, 12*time.Second, 10*time.Second
		o.breakerDelay, o.returnLimit, o.probes = 3*time.Second, 6*time.Second, 15
	}
	if n := messagesAmong(clients); n > 0 && n < len(clients) {
		o.probes *= 2
	}
	return o
}

const outageName = "steady-outage"

// messagesAmong counts the clients of /v1/messages.
func messagesAmong(clients []string) (n int) {
	for _, c := range clients {
		if formatOf(c) == Messages {
			n++
		}
	}
	return n
}

// target and fallback are as the upstream knows them. leg keeps the counts apart.
func (o *Outage) target(leg string) string {
	return fmt.Sprintf("%s.%s@ok,for=%v/503,for=%v/ok", outageName, leg, o.before, o.away)
}

func (o *Outage) fallback() string { return outageName + ".fallback@ok" }

// model is the gateway's entry for it.
func (o *Outage) model() model {
	m := model{name: outageName}
	for _, f := range []Format{Chat, Messages} {
		m.targets = append(m.targets, modelTarget{on("default", f), o.target("through"), 0, ""}, modelTarget{on("backup", f), o.fallback(), 0, ""})
	}
	return m
}

// run sends the traffic on both ways at once.
func (o *Outage) run(b *Bench) {
	var legs sync.WaitGroup
	legs.Go(func() { o.straight = o.send(b, b.Upstream.URL()+"/v1", o.target("straight")) })
	if b.Gateway != nil {
		legs.Go(func() { o.through = o.send(b, b.Gateway.URL+"/v1", outageName) })
	}
	legs.Wait()
	o.primary = b.records(o.target("through"))
	if err := o.checkStraight(); err != nil {
		o.failures = append(o.failures, "straight: "+err.Error())
	}
	if b.Gateway == nil {
		return
	}
	for _, check := range []func() error{o.answered, o.moved, o.spared, o.returned} {
		if err := check(); err != nil {
			o.failures = append(o.failures, err.Error())
		}
	}
}

func (o *Outage) send(b *Bench, base, model string) []reply {
	n := int((o.before + o.away + o.after) / (time.Second / requestsASecond))
	out := make([]reply, n)
	begun := time.Now()
	var all sync.WaitGroup
	for i := range n {
		r := &out[i]
		r.client, r.mode = o.Clients[i%len(o.Clients)], []Mode{Streamed, Whole}[i/len(o.Clients)%2]
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / requestsASecond)))
		r.at = time.Since(begun)
		all.Go(func() {
			a, err := b.Clients[r.client].Do(Call{
				BaseURL: base, APIKey: ClientKey, Model: model, Stream: r.mode == Streamed, GiveUpMS: 60_000,
				Messages: []Message{{"user", fmt.Sprintf("Request %d of the steady traffic.", i)}},
			})
			if err != nil {
				a.Error = err.Error()
			}
			r.Answer = a
		})
	}
	all.Wait()
	return out
}

// complete says whether an answer is the whole one of the model it names, which
// is the primary or the fallback.
func (r *reply) complete(leg string) bool {
	known := r.Model == outageName+"."+leg || r.Model == outageName+".fallback"
	return r.OK && known && r.FinishReason == "stop" && r.Text == upstreamtest.TextFor(r.Model+"@")
}

func (r *reply) String() string {
	return fmt.Sprintf("%s %s at %.1f s: model %q, finish_reason %q, %s", r.client, r.mode, r.at.Seconds(), r.Model, r.FinishReason, r.errorLine())
}

// during picks the replies to what was asked from start to end.
func during(rs []reply, start, end time.Duration) []reply {
	var out []reply
	for _, r := range rs {
		if r.at >= start && r.at < end {
			out = append(out, r)
		}
	}
	return out
}

// checkStraight: without the gateway most requests of the outage fail. Those of
// its last seconds may live on the library's own retries.
func (o *Outage) checkStraight() error {
	asked, failed := during(o.straight, o.before, o.before+o.away), 0
	for i := range asked {
		if !asked[i].complete("straight") {
			failed++
		}
	}
	if failed*2 < len(asked) {
		return fmt.Errorf("only %d of %d requests failed in the outage", failed, len(asked))
	}
	return nil
}

// answered: every request has a complete answer, and no client had to retry.
func (o *Outage) answered() error {
	var bad []string
	for i := range o.through {
		r := &o.through[i]
		if !r.complete("through") {
			bad = append(bad, r.String())
		} else if len(r.Sent) > 1 {
			bad = append(bad, fmt.Sprintf("%s %s at %.1f s had to retry: %+v", r.client, r.mode, r.at.Seconds(), r.Sent))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d requests were not answered:\n%s", len(bad), len(o.through), strings.Join(bad[:min(len(bad), 5)], "\n"))
	}
	return nil
}

// moved: in the outage it is the fallback that answers. When it begins the primary
// counts from the first request that reaches it, and requests take their time on a busy
// machine: the edges do not count.
func (o *Outage) moved() error {
	for _, r := range during(o.through, o.before+o.breakerDelay, o.before+o.away-o.breakerDelay) {
		if r.OK && r.Model != outageName+".fallback" {
			return fmt.Errorf("the primary answered in the outage: %s", &r)
		}
	}
	return nil
}

// spared: once the breaker knows, the primary sees probes only.
func (o *Outage) spared() error {
	if len(o.primary) == 0 {
		return errors.New("the primary was never asked")
	}
	begun, probes := o.primary[0].Time, 0
	for _, rec := range o.primary {
		if at := rec.Time.Sub(begun); at > o.before+o.breakerDelay && at < o.before+o.away {
			probes++
		}
	}
	if probes > o.probes {
		return fmt.Errorf("the primary was asked %d times in the outage after the first %v, want at most %d", probes, o.breakerDelay, o.probes)
	}
	return nil
}

// returned: soon after the outage all traffic is on the primary again.
func (o *Outage) returned() error {
	rest := during(o.through, o.before+o.away+o.returnLimit, time.Hour)
	if n := slices.IndexFunc(rest, func(r reply) bool { return r.Model != outageName+".through" }); n >= 0 {
		return fmt.Errorf("not on the primary %v after its recovery: %s", (rest[n].at - o.before - o.away).Round(time.Second/10), &rest[n])
	}
	return nil
}

// summary tells the numbers in one line.
func (o *Outage) summary() string {
	failed, slowest := 0, time.Duration(0)
	for i := range o.straight {
		if !o.straight[i].complete("straight") {
			failed++
		}
	}
	s := fmt.Sprintf("straight: %d of %d failed", failed, len(o.straight))
	if len(o.through) == 0 {
		return s
	}
	failed = 0
	back := o.before + o.away
	for i := range o.through {
		r := &o.through[i]
		if !r.complete("through") {
			failed++
		}
		slowest = max(slowest, r.Elapsed())
		if r.Model == outageName+".fallback" {
			back = max(back, r.at)
		}
	}
	probes := 0
	for _, rec := range o.primary {
		if rec.Status == 503 {
			probes++
		}
	}
	return fmt.Sprintf("%s; through: %d of %d failed, slowest %v, primary asked %d times in %v of outage, last answer of the fallback %.1f s after its end",
		s, failed, len(o.through), slowest.Round(time.Millisecond), probes, o.away, (back - o.before - o.away).Seconds())
}
