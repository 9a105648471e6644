//go:build unix

package app_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
	"github.com/rebound-llm/rebound/store/storetest"
)

// sharedWithin is how soon the others know what one replica finds out.
const sharedWithin = time.Second

// waitShared waits that long, and for as much longer as the machine stood still.
func waitShared(t *testing.T) {
	stalled := storetest.Stalls(t)
	time.Sleep(sharedWithin)
	time.Sleep(stalled())
}

// replicas are two gateways with one Redis and one upstream.
type replicas struct {
	t        *testing.T
	one, two *gateway
	up       *upstreamtest.Running
	config   string
}

// shared returns the configuration of a store with a timeout.
func shared(t *testing.T, url string, timeout time.Duration) string {
	return fmt.Sprintf("store: {redis: {url: %q, prefix: %q, timeout: %s}}", url, storetest.Prefix(t), timeout)
}

// slowStore returns the configuration of a store with a long timeout, so that a busy machine does not matter.
func slowStore(t *testing.T, url string) string { return shared(t, url, 5*time.Second) }

// pair starts two replicas; more is configuration on top of quick.
func pair(t *testing.T, more ...string) *replicas {
	t.Helper()
	up := upstreamtest.New(upstreamtest.Options{KeepRequests: 1 << 16}).Start(t)
	p := &replicas{t: t, up: up, config: text(up, more...)}
	p.one, p.two = launch(t, p.config), launch(t, p.config)
	return p
}

// If one replica runs into a limit, the others soon do not use that key or target.
func TestReplicasShareCooldowns(t *testing.T) {
	t.Parallel()
	const limit = "lim@429,retry-after=60"
	tests := []struct {
		name, models  string
		limited       string // the model that has the limit
		key           string // the credential that has it; empty: any
		target, after string // X-Rebound-Target of both replicas
	}{
		{"target", modelMap("m", "default "+limit, "default spare"), limit, "", "default/spare", "default/spare"},
		{"key", modelMap("m", "two "+limit+",only-key="+keyA), limit + ",only-key=" + keyA, keyA, "two/" + limit + ",only-key=" + keyA, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := pair(t, slowStore(t, storetest.Redis(t)), tt.models)
			refused := func() (n int) {
				for _, r := range p.up.Requests(tt.limited) {
					if tt.key == "" || r.Key == tt.key {
						n++
					}
				}
				return n
			}
			if r := p.one.must(chat("m", false, "")); !strings.HasPrefix(r.target(), tt.target) || refused() != 1 {
				t.Fatalf("replica 1 was refused %d times: %v", refused(), r)
			}
			p.two.knows(`"kind":"cool-down"`)
			r := p.two.must(chat("m", false, ""))
			if refused() != 1 {
				t.Errorf("replica 2 asked what replica 1 knows to be limited")
			}
			if !strings.HasPrefix(r.target(), tt.target) {
				t.Errorf("replica 2 was answered by %s", r.target())
			}
			if n := r.header.Get("X-Rebound-Attempts"); n != "" && n != "1" {
				t.Errorf("replica 2 needed %s attempts", n)
			}
		})
	}
}

// A breaker that one replica opens is open for all, and closes for all once the probes of one succeed.
func TestReplicasShareBreakers(t *testing.T) {
	t.Parallel()
	const open = `"target":"default/prim","kind":"breaker"`
	p := pair(t, slowStore(t, storetest.Redis(t)), modelMap("m", "default prim", "default spare"))
	script(t, p.up, "prim", "503")
	for range 6 {
		p.one.must(chat("m", false, ""))
	}
	eventually(t, 20*time.Second, "replica 1 reports an open breaker", func() bool {
		return strings.Contains(p.one.log.String(), "breaker_opened")
	})
	asked := count(p.up, "prim")
	if asked < 5 {
		t.Fatalf("the breaker opened after %d requests", asked)
	}
	p.two.knows(open)
	if r := p.two.must(chat("m", false, "")); count(p.up, "prim") != asked || r.target() != "default/spare" {
		t.Errorf("replica 2 does not respect the breaker of replica 1: %d more requests, %v", count(p.up, "prim")-asked, r)
	}

	// The upstream recovers. Half-open, a replica has one request at a time there.
	script(t, p.up, "prim", "delay=150ms")
	eventually(t, 10*time.Second, "replica 1 reports a closed breaker", func() bool {
		p.one.must(chat("m", false, ""))
		return strings.Contains(p.one.log.String(), "breaker_closed")
	})
	eventually(t, 20*time.Second, "replica 2 sees the breaker closed", func() bool { return !strings.Contains(p.two.targets(), open) })
	for i, g := range []*gateway{p.one, p.two} {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if r := g.ask(t.Context(), chat("m", false, "")); !r.ok() || r.target() != "default/prim" {
					t.Errorf("replica %d does not see the breaker closed: %v", i+1, r)
				}
			})
		}
		wg.Wait()
	}
	if strings.Contains(p.two.log.String(), "breaker_opened") {
		t.Error("replica 2 opened the breaker by itself: the test shows nothing")
	}
}

// What a target refuses from one replica the others do not send to it, nor do replicas that start later.
func TestReplicasShareRefusals(t *testing.T) {
	t.Parallel()
	const model = "fussy@no-param=max_tokens"
	// As far away as another zone: what a replica does not wait for when it
	// starts, its first request does not know.
	p := pair(t, slowStore(t, "redis://"+distant(t, storetest.StartRedis(t).Addr(), 2*time.Millisecond)+"/0"))
	// sent tells which field the last request had and how many there were.
	sent := func() (n int, field string) {
		recs := p.up.Requests(model)
		for _, name := range []string{"max_tokens", "max_completion_tokens"} {
			if gjson.Get(recs[len(recs)-1].Body, name).Int() == 77 {
				field += name
			}
		}
		return len(recs), field
	}
	body := chat(model, false, `"max_tokens":77,`)
	p.one.must(body)
	if n, field := sent(); n != 2 || field != "max_completion_tokens" {
		t.Fatalf("replica 1 sent %d requests, the last with %q", n, field)
	}
	p.two.knows("field max_tokens")
	p.two.must(body)
	if n, field := sent(); n != 3 || field != "max_completion_tokens" {
		t.Errorf("replica 2 was not right the first time: %d requests, the last with %q", n-2, field)
	}
	for i := range 3 {
		stop(t, p.one, p.two)
		p.one, p.two = launch(t, p.config), launch(t, p.config)
		for j, g := range []*gateway{p.one, p.two} {
			before, _ := sent()
			g.must(body)
			if n, field := sent(); n != before+1 || field != "max_completion_tokens" {
				t.Errorf("restart %d: replica %d was not right the first time: %d requests, the last with %q", i+1, j+1, n-before, field)
			}
		}
	}
}

// step is one outage: how Redis fails and how it returns.
type step struct{ away, back func(*storetest.Server) }

// An outage of Redis costs no request. Each replica logs one line at its begin and one at its end, and
// afterwards the replicas share again.
func TestReplicasOutliveRedis(t *testing.T) {
	t.Parallel()
	outages := []step{
		{(*storetest.Server).Kill, (*storetest.Server).Restart},
		{(*storetest.Server).Pause, (*storetest.Server).Resume},
		{(*storetest.Server).Pause, (*storetest.Server).Restart},
	}
	server := storetest.StartRedis(t)
	p := pair(t, shared(t, server.URL(), outage), cooling)
	end := p.traffic(t)
	p.shares("before")
	for i, s := range outages {
		s.away(server)
		p.logs("store is away", i+1)
		during := fmt.Sprint("during", i)
		p.cool(p.one, during) // known here now, and to the other when the store is back
		s.back(server)
		p.logs("store is back", i+1)
		p.shares(fmt.Sprint("after", i))
		p.knowsLimit(during)
		p.avoids(p.two, during)
	}
	end()
	p.countLogged("store is away", len(outages))
	for i, g := range []*gateway{p.one, p.two} {
		lines := g.log.lines(t, func(line map[string]any) bool { return isWarning(line) && line["event"] == nil })
		if len(lines) != len(outages) {
			t.Errorf("replica %d logged %d warnings, want %d: %v", i+1, len(lines), len(outages), lines)
		}
	}
	stop(t, p.one, p.two)
}

// A gateway starts and serves without Redis, and shares state once Redis is there.
func TestReplicasStartWithoutRedis(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t)
	server.Kill()
	p := pair(t, shared(t, server.URL(), outage), cooling)
	end := p.traffic(t)
	p.logs("store is away", 1)
	p.cool(p.one, "early")
	server.Restart()
	p.shares("later")
	p.knowsLimit("early")
	p.avoids(p.two, "early")
	end()
	p.countLogged("store is away", 1)
	p.countLogged("store is back", 1)
	stop(t, p.one, p.two)
}

// outage is the store's timeout: long enough for a healthy store on a busy machine.
const outage = time.Second

// countLogged checks how often each replica logged a text.
func (p *replicas) countLogged(text string, want int) {
	for i, g := range []*gateway{p.one, p.two} {
		if n := len(g.log.lines(p.t, hasMessage(text))); n != want {
			p.t.Errorf("replica %d logged %d times that the %s, want %d", i+1, n, text, want)
		}
	}
}

// logs waits until each replica has logged a text n times.
func (p *replicas) logs(text string, n int) {
	for _, g := range []*gateway{p.one, p.two} {
		eventually(p.t, 20*time.Second, "the "+text, func() bool { return len(g.log.lines(p.t, hasMessage(text))) >= n })
	}
}

// cooling gives each model cold-X a limited first target of its own.
var cooling = func() string {
	var b strings.Builder
	b.WriteString("models:\n")
	for _, name := range coolNames {
		fmt.Fprintf(&b, "  %q: {targets: [{upstream: default, model: %q}, {upstream: default, model: spare}]}\n", "cool-"+name, name+"@429,retry-after=60")
	}
	return b.String()
}()

// coolNames are the models of cooling, which a test uses one by one.
var coolNames = []string{"before", "early", "later", "during0", "during1", "during2", "after0", "after1", "after2"}

// cool makes a gateway run into the limit of a target.
func (p *replicas) cool(g *gateway, name string) {
	if r := g.must(chat("cool-"+name, false, "")); r.target() != "default/spare" || count(p.up, name) != 1 {
		p.t.Errorf("asked for %s %d times: %v", name, count(p.up, name), r)
	}
	p.avoids(g, name)
}

// avoids checks that a gateway knows of a limit.
func (p *replicas) avoids(g *gateway, name string) {
	before := count(p.up, name)
	if r := g.must(chat("cool-"+name, false, "")); r.target() != "default/spare" || count(p.up, name) != before {
		p.t.Errorf("replica %d does not know of the limit of %s: %v", 1+slices.Index([]*gateway{p.one, p.two}, g), name, r)
	}
}

// shares checks that replica 2 learns of a limit that replica 1 has just met.
func (p *replicas) shares(name string) {
	p.cool(p.one, name)
	p.knowsLimit(name)
	p.avoids(p.two, name)
}

// knowsLimit waits until replica 2 knows of the limit of a model of cooling.
func (p *replicas) knowsLimit(name string) {
	p.t.Helper()
	p.two.knows(`"default/` + name + `@429,retry-after=60#`)
}

// targets lists what a gateway knows about its targets.
func (g *gateway) targets() string { return g.admin(http.MethodGet, "/rebound/targets", "") }

// knows waits until a gateway knows something about its targets.
func (g *gateway) knows(what string) {
	g.t.Helper()
	eventually(g.t, 20*time.Second, "it knows of "+what, func() bool { return strings.Contains(g.targets(), what) })
}

// traffic sends 50 requests per second to both replicas until end is called. None may fail. They are the first of their
// sessions, for which nothing is read; TestTwentyFaults limits the time of those that do.
func (p *replicas) traffic(t *testing.T) (end func()) {
	t.Helper()
	var n atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			g := []*gateway{p.one, p.two}[i%2]
			wg.Go(func() {
				// Not ctx: a request under way is finished.
				r := g.ask(context.WithoutCancel(ctx), chat(fmt.Sprintf("load%d", i%8), i%4 < 2, ""))
				if !r.ok() {
					t.Errorf("a request failed: %v", r)
				}
				n.Add(1)
			})
		}
	})
	end = sync.OnceFunc(func() {
		stop()
		wg.Wait()
		if n.Load() < 20 {
			t.Errorf("only %d requests were sent", n.Load())
		}
	})
	t.Cleanup(end)
	return end
}

// distant forwards connections to an address with a delay in each direction, and returns its own address.
func distant(t *testing.T, to string, lag time.Duration) string {
	t.Helper()
	later := func([]byte) { time.Sleep(lag) }
	return relay(t, to, later, later)
}

func script(t *testing.T, up *upstreamtest.Running, model, steps string) {
	t.Helper()
	if err := up.Script(model, steps); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, gateways ...*gateway) {
	t.Helper()
	for _, g := range gateways {
		if err := g.stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	}
}
