package app_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// faults lists the upstream's faults, one per request.
var faults = []string{
	"ok", "delay=100ms", "gap=10ms", "503x2/ok", "429,retry-after-ms=50/ok", "reset/ok", "close/ok", "reset", "cut=0.5/ok", "cut=0.5",
	"fin=0.6/ok", "stall=0.5:10s/ok", "stall=0.3", "hang", "hang/ok", "headers-hang", "first=300ms,gap=5ms", "first=10s", "half-json/ok",
	"error-event=0.5/ok", "malformed=0.3/ok", "empty/ok", "role-only/ok", "tool,gap=10ms", "tool,cut=0.9/ok", "reason=0.2,gap=5ms",
	"bad-chunk/ok", "status-junk/ok", "short/ok", "html", "big=300000,chunks=100", "pings=20ms,first=400ms", "no-param=max_tokens", "529x9",
}

// Clients leave at any moment: before the answer, within it, and while the gateway waits, resends, runs
// parallel attempts or continues. Every upstream request ends with its client, except the loser of a
// parallel attempt whose client got an answer, which is read to its end. No goroutine and no place of a target leaks.
func TestClientsLeave(t *testing.T) {
	const requests, atOnce = 300, 24
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	up := upstreamtest.New(upstreamtest.Options{KeepRequests: -1}).Start(t)
	g := launch(t, text(up, modelMap("shared", "default prim", "default spare"), "log: {requests: true}"))
	g.must(chat("warm", true, ""))
	g.must(chat("shared", false, ""))
	baseline := ours()

	// The model shared is served by a target that fails in many ways.
	steps := slices.Clone(faults)
	rnd.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	script(t, up, "prim", strings.Join(steps, "/"))

	slots := make(chan struct{}, atOnce)
	var clients sync.WaitGroup
	var mu sync.Mutex
	var left, answered int
	for i := range requests {
		fault := faults[i%len(faults)]
		model := fmt.Sprintf("p%d@%s", i, fault)
		if i%3 == 0 {
			model = "shared"
		}
		body := chat(model, rnd.IntN(3) > 0, `"max_tokens":50,`)
		// From half a millisecond to two seconds, each order of magnitude as often.
		patience := time.Duration(float64(500*time.Microsecond) * math.Pow(4000, rnd.Float64()))
		slots <- struct{}{}
		clients.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r := g.ask(ctx, body)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil {
				left++
			} else if r.ok() {
				answered++
			}
		})
	}
	clients.Wait()
	t.Logf("%d clients left, %d were answered", left, answered)
	if left < requests/10 || answered < requests/10 {
		t.Errorf("%d clients left and %d were answered: the test shows little", left, answered)
	}

	end := time.Now().Add(10 * time.Second)
	for {
		active, now := up.Stats().Active, ours()
		losers := 0
		for _, stack := range now {
			if strings.Contains(stack, ").readOn(") {
				losers++
			}
		}
		// Beside the goroutine that waits for a loser one reads it, or ends its reading.
		if len(now) <= len(baseline)+2*losers && int(active) <= losers && losers <= 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after all clients have gone: %d requests at the upstream; %d goroutines, %d before:\n%s", active, len(now), len(baseline), strings.Join(now, "\n\n"))
		}
		time.Sleep(20 * time.Millisecond)
	}

	// All places were given back: the target serves several requests at a time again.
	script(t, up, "prim", "delay=100ms")
	eventually(t, 20*time.Second, "the first target is asked again", func() bool {
		return g.must(chat("shared", false, "")).target() == "default/prim"
	})
	eventually(t, 20*time.Second, "the first target serves eight at a time", func() bool {
		var wg sync.WaitGroup
		var mu sync.Mutex
		there := 0
		for range 8 {
			wg.Go(func() {
				if r := g.ask(t.Context(), chat("shared", false, "")); r.ok() && r.target() == "default/prim" {
					mu.Lock()
					defer mu.Unlock()
					there++
				}
			})
		}
		wg.Wait()
		return there == 8
	})
}

// A client that leaves gives back what its attempt holds: the probe of a half-open breaker, the place of a
// key after its cool-down, or the place of a resend. Otherwise no other request would ever get it.
func TestLeaversGiveBackPlaces(t *testing.T) {
	t.Parallel()
	const breaker = "breaker: {open: 3s, open_max: 3s, cooldown: 50ms}"
	tests := []struct {
		name, breaker string
		fail          string // how the target fails at first, and how often
		times         int
		pause         time.Duration // until it may be asked again
		leave         string        // what it does when the clients leave, one after the other
		leavers       int
		then          string // what it does for the last one
	}{
		{"probe", "breaker: {open: 300ms, open_max: 15s}", "503", 6, 400 * time.Millisecond, "SLOW", 1, "ok"},
		{"ramp", breaker, "429,retry-after-ms=300", 1, 400 * time.Millisecond, "SLOW", 1, "ok"},
		{"resend", "breaker: {min_requests: 1000}", "", 0, 0, "503/SLOW", 3, "503/ok"},
	}
	moments := []struct {
		name, slow string
		patience   time.Duration
	}{
		{"before the answer", "hang", 400 * time.Millisecond},
		{"within the answer", "gap=20ms,chunks=500", 400 * time.Millisecond},
		{"while two attempts race", "hang", 1800 * time.Millisecond}, // the first-token limit is passed
	}
	for _, tt := range tests {
		for _, when := range moments {
			t.Run(tt.name+" "+when.name, func(t *testing.T) {
				t.Parallel()
				up := upstreamtest.New(upstreamtest.Options{}).Start(t)
				config := text(up, modelMap("m", "default prim", "default spare")+moreModels("solo", "default prim"))
				config = strings.Replace(config, breaker, tt.breaker, 1)
				g := launch(t, strings.Replace(config, "min: 1s, whole: 1s, per_tokens: 1000000, same_after: 2s", "min: 700ms, whole: 700ms, per_tokens: 1000000, same_after: 700ms", 1))
				model := "m"
				if tt.fail == "" {
					model = "solo" // with another target, nobody waits for a resend
				} else {
					script(t, up, "prim", tt.fail)
				}
				for range tt.times {
					g.must(chat(model, false, ""))
				}
				time.Sleep(tt.pause)
				script(t, up, "spare", "hang")
				// On a busy machine a client may leave at another moment; that one is tried again.
				for left, tries := 0, 0; left < tt.leavers; tries++ {
					script(t, up, "prim", strings.Replace(tt.leave, "SLOW", when.slow, 1))
					primary, all := count(up, "prim"), count(up, "")
					want := 1 + strings.Count(tt.leave, "/")
					ctx, cancel := context.WithTimeout(t.Context(), when.patience)
					r := g.ask(ctx, chat(model, true, ""))
					cancel()
					primary, all = count(up, "prim")-primary, count(up, "")-all
					if races := all > want; !r.ok() && primary >= want && races == (when.patience > time.Second) {
						left++
					} else if tries == 10 {
						t.Fatalf("clients do not leave at the right time: asked %d times, %d of them the first target, %v", all, primary, r)
					}
				}
				script(t, up, "spare", "ok")
				eventually(t, 10*time.Second, "the upstream is rid of them", func() bool { return up.Stats().Active == 0 })
				eventually(t, 10*time.Second, "the target is asked again and answers", func() bool {
					script(t, up, "prim", tt.then)
					r := g.ask(t.Context(), chat(model, false, ""))
					return r.ok() && r.target() == "default/prim"
				})
			})
		}
	}
}

// ours returns the stacks of goroutines that run code of the gateway, without the scripted upstream.
func ours() []string {
	buf := make([]byte, 8<<20)
	var out []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "rebound/proxy/upstreamtest") {
			continue
		}
		for _, part := range []string{"rebound/proxy.", "rebound/proxy/", "rebound/recovery.", "rebound/recovery/"} {
			if strings.Contains(stack, part) {
				out = append(out, stack)
				break
			}
		}
	}
	return out
}
