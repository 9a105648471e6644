//go:build linux

package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// A gateway that may answer so many requests at once has modest keys, which
// together ask for all of that, and a greedy one that asks for five times as much.
const (
	places  = 40
	modest  = 4
	greedy  = 5 * places
	bodies  = 64 << 20  // limits.memory
	large   = 200 << 10 // bytes of a greedy request
	service = 250 * time.Millisecond

	overloaded = 6 * time.Second  // how long
	recovered  = 30 * time.Second // until when full speed has to be back
	window     = time.Second      // of which the speed is measured
)

// overload is what came of it.
type overload struct {
	before, during, after float64       // answers in a second, of all modest keys together
	share                 float64       // the least that a modest key had meanwhile, of its even share of all attempts
	greedy                float64       // the greedy key's answers in a second
	refused               int64         // for lack of places or memory
	failed                int64         // other failures, of modest keys
	idle, peak            float64       // MiB resident: before, and at most
	back                  time.Duration // until no modest key is refused any more
}

// asking are the clients of a key.
type asking struct{ answers, attempts, refused, failed atomic.Int64 }

// ask asks one request after the other.
func (a *asking) ask(ctx context.Context, url, key, body string, pause time.Duration) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := client.Do(req)
		if err != nil {
			if ctx.Err() == nil {
				a.failed.Add(1)
			}
			continue
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case ctx.Err() != nil:
		case err == nil && resp.StatusCode == http.StatusOK:
			n, _ := strconv.Atoi(resp.Header.Get("X-Rebound-Attempts"))
			a.attempts.Add(int64(n))
			a.answers.Add(1)
		case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "1" && bytes.Contains(answer, []byte(`"no_`)):
			a.refused.Add(1)
			wait(ctx, pause)
		default:
			a.failed.Add(1)
		}
	}
}

// run measures a gateway of its own.
func (o *overload) run(t *testing.T, program string) {
	g := overloadGateway(t, program)
	body := func(content string) string {
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, content)
	}
	keys := make([]asking, modest+1)
	var working sync.WaitGroup
	defer working.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()

	// watch counts the attempts of each key for some time, and the modest ones'
	// answers in a second.
	watch := func(d time.Duration) (attempts []int64, rate float64) {
		was := make([]int64, len(keys))
		answers, begun := int64(0), time.Now()
		for i := range keys {
			was[i] = keys[i].attempts.Load()
		}
		for i := range modest {
			answers -= keys[i].answers.Load()
		}
		for time.Since(begun) < d {
			wait(ctx, 50*time.Millisecond)
			if s, ok := g.sample(); ok {
				o.peak = max(o.peak, s.rss)
			}
		}
		for i := range modest {
			answers += keys[i].answers.Load()
		}
		for i := range keys {
			attempts = append(attempts, keys[i].attempts.Load()-was[i])
		}
		return attempts, float64(answers) / time.Since(begun).Seconds()
	}
	for i := range modest {
		for range (places - places/(modest+1)/4) / modest { // a quarter of a share is kept for the key that is away
			working.Go(func() { keys[i].ask(ctx, g.URL(), keyOf(i), body("Hello."), service/5) })
		}
	}
	wait(ctx, window)
	_, o.before = watch(3 * window)
	o.idle = o.peak

	much, enough := context.WithCancel(ctx)
	for range greedy {
		working.Go(func() {
			keys[modest].ask(much, g.URL(), keyOf(modest), body(strings.Repeat("Much ", large/5)), service)
		})
	}
	wait(ctx, window) // until the modest keys have asked for their share
	was := keys[modest].answers.Load()
	attempts, during := watch(overloaded)
	o.during, o.greedy = during, float64(keys[modest].answers.Load()-was)/overloaded.Seconds()
	all := int64(0)
	for _, n := range attempts {
		all += n
	}
	o.share = float64(slices.Min(attempts[:modest])*(modest+1)) / float64(all)
	enough()
	refused := func() (n int64) {
		for i := range modest {
			n += keys[i].refused.Load()
		}
		return n
	}
	for begun, before := time.Now(), int64(-1); before != refused() && o.back < recovered; {
		o.back, before = time.Since(begun), refused()
		wait(ctx, window)
	}
	_, o.after = watch(3 * window)
	for i := range keys {
		o.refused += keys[i].refused.Load()
	}
	for i := range modest {
		o.failed += keys[i].failed.Load()
	}
}

// overloadGateway starts a gateway with a target that needs some time, and fails
// now and then: more often with what the greedy key asks for.
func overloadGateway(t *testing.T, program string) *gateway {
	var asked [2]atomic.Int64
	up := upstreamtest.New(upstreamtest.Options{KeepRequests: -1, Bytes: 300, Latency: service, Rename: func(_, _, body string) string {
		who, fails := 0, int64(10)
		if len(body) > large {
			who, fails = 1, 4
		}
		if asked[who].Add(1)%fails == 0 {
			return "m@503"
		}
		return "m"
	}}).Start(t)
	dir := t.TempDir()
	g := &gateway{name: "overloaded", program: program, file: filepath.Join(dir, "gateway.yaml"), log: filepath.Join(dir, "gateway.log")}
	var keys strings.Builder
	for i := range modest + 1 {
		fmt.Fprintf(&keys, "{name: key%d, env: GATEWAY_KEY_%d}, ", i, i)
		g.env = append(g.env, fmt.Sprintf("GATEWAY_KEY_%d=%s", i, keyOf(i)))
	}
	text := fmt.Sprintf("upstreams: {default: {url: %q, profile: hosted, keys: [{name: a, env: KEY_A}]}}\nauth: {keys: [%s]}\n"+
		"limits: {concurrent: %d, memory: %d, body: %d}\nrecovery: {backoff_min: 50ms, backoff_max: 500ms}\nbreaker: {failures: %%d}\n",
		up.URL()+"/v1", keys.String(), places, bodies, bodies)
	if err := g.configure(text, 0); err != nil {
		t.Fatal(err)
	}
	if err := g.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func keyOf(i int) string { return fmt.Sprintf("gk-soak-%08d", i) }

// check says what of it must not be.
func (o *overload) check(t *testing.T) {
	if o.share < 0.9 {
		t.Errorf("a modest key had %.2f of its even share while another asked for five times what there is", o.share)
	}
	if o.failed > 0 {
		t.Errorf("%d requests of modest keys failed", o.failed)
	}
	if o.refused == 0 {
		t.Error("nothing was refused: there was no overload")
	}
	if o.back >= recovered {
		t.Errorf("%v after the overload modest keys were still refused", o.back)
	}
	if most := o.idle + 1.5*bodies/(1<<20); o.peak > most {
		t.Errorf("resident memory rose from %.0f to %.0f MiB, more than to %.0f", o.idle, o.peak, most)
	}
}

// report tells of it.
func (o *overload) report(p func(format string, args ...any)) {
	p("\n## Overload\n\nAnother gateway may answer %d requests at once (`limits.concurrent`). %d modest keys together ask for so many; for %v a greedy key asks for %d\n", places, modest, overloaded, greedy)
	p("more, of 200 KiB each. Of its attempts a quarter fails upstream and is made again, of theirs a tenth.\n\n")
	p("| | before | meanwhile | after |\n|---|---|---|---|\n")
	p("| answers in a second, modest keys | %.0f | %.0f | %.0f |\n| answers in a second, greedy key | | %.0f | |\n", o.before, o.during, o.after, o.greedy)
	p("| resident memory, at most, MiB | %.0f | %.0f | |\n\n", o.idle, o.peak)
	p("The modest key that had least had %.0f %% of its even share of all attempts; %d requests of modest keys failed. %d requests were refused at once, with\n", 100*o.share, o.failed, o.refused)
	p("503 and `Retry-After`. %.0f s after the overload no modest key was refused any more.\n", o.back.Seconds())
}
