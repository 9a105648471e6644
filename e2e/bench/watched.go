//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/e2e/bench/load"
)

// The load under which being watched is measured: in all 500 requests a second, of
// which one in twenty fails first, so that there is something to tell.
const (
	healthyRate = 475
	failingRate = 25
	roundLength = time.Second
	// watchedBound is how much more CPU a request may cost.
	watchedBound = 1.05
)

// watched measures what it costs to be watched: two gateways of the same program get
// the same load in turn, many short rounds. One has a collector that takes one trace in
// a hundred, and an open page. The ratio of their CPU per request is taken in each round.
func watched(ctx context.Context, o options, dir string) error {
	binary, err := findRebound(ctx, o.binary, dir)
	if err != nil {
		return err
	}
	addrs, err := freeAddrs(4)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var failedOnce sync.Map // of what failed once
	faulty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a part of one fails, too
		w.Header().Set("Content-Type", "application/json")
		if _, again := failedOnce.LoadAndDelete(string(body)); !again {
			failedOnce.Store(string(body), nil)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"Overloaded.","type":"server_error","code":null}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Well."},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":1000,"completion_tokens":2,"total_tokens":1002}}`)
	}))
	defer faulty.Close()
	traces := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer traces.Close()
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	gateway := func(name, addr, more string) (*target, error) {
		file := filepath.Join(dir, name+".yaml")
		text := fmt.Sprintf("listen: %s\nupstreams: {default: {url: \"http://%s/v1\"}, faulty: {url: \"%s/v1\", passthrough: true}}\n"+
			"models: {fails: {targets: [{upstream: faulty, model: m}]}}\nbreaker: {min_requests: 1000000, resend_min: 1000}\nrecovery: {backoff_min: 10ms, backoff_max: 20ms}\n%s",
			addr, addrs[0], faulty.URL, more)
		return &target{name: name, addr: addr, program: program{name: name, argv: []string{binary, "serve", "--config", file}, env: environment}}, os.WriteFile(file, []byte(text), 0o600)
	}
	off, err := gateway("alone", addrs[1], "")
	if err != nil {
		return err
	}
	on, err := gateway("watched", addrs[2], fmt.Sprintf("otlp: {endpoint: %q, sample: 0.01}\n", traces.URL))
	if err != nil {
		return err
	}
	upstream := &target{name: direct, addr: addrs[0], program: program{name: direct, argv: []string{self, "mock", addrs[0]}, env: environment}}
	f := &field{targets: []*target{upstream, off, on}}
	defer f.stop()
	gatewayCore, otherCore, err := chooseCores()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: nothing is pinned to a core:", err)
	}
	for _, t := range f.targets {
		t.dir, t.core = dir, gatewayCore
		if t == upstream {
			t.core = otherCore
		}
		if _, err := t.restart(ctx); err != nil {
			return err
		}
	}
	viewer, leave := context.WithCancel(ctx)
	var pages sync.WaitGroup
	events := 0
	pages.Go(func() { events = page(viewer, "http://"+on.addr+"/rebound/") })
	before, err := readMeter(f)
	if err != nil {
		leave()
		return err
	}
	var costs [2][]float64
	for round := range o.rounds + 2 { // the first two warm up
		for turn := range 2 {
			which := (round + turn) % 2 // who is first alternates
			cost, err := costOf(ctx, []*target{off, on}[which])
			if err != nil {
				leave()
				return err
			}
			if round >= 2 {
				costs[which] = append(costs[which], cost)
			}
		}
	}
	after, err := readMeter(f)
	leave()
	pages.Wait()
	if err != nil {
		return err
	}
	ratios := make([]float64, len(costs[0]))
	for i := range ratios {
		ratios[i] = costs[1][i] / costs[0][i]
	}
	low, high := interval(ratios)
	alone, _ := spreadOf(costs[0])
	seen, _ := spreadOf(costs[1])
	ratio, _ := spreadOf(ratios)
	fmt.Printf("%d requests a second, %d of them with a failed attempt; %d pairs of rounds of %v\n", healthyRate+failingRate, failingRate, len(ratios), roundLength)
	fmt.Printf("CPU per request: alone %.0f µs (%.0f to %.0f), watched %.0f µs (%.0f to %.0f)\n", alone.Median, alone.Min, alone.Max, seen.Median, seen.Min, seen.Max)
	fmt.Printf("ratio: median %.3f, 95 %% interval %.3f to %.3f, single pairs %.3f to %.3f; the bound is %.2f\n", ratio.Median, low, high, ratio.Min, ratio.Max, watchedBound)
	fmt.Printf("the page got %d events; other programs kept %.1f cores busy\n", events, after.others(before))
	if low > watchedBound || events == 0 {
		return errGates
	}
	return nil
}

// costOf is the CPU of one round per request, in microseconds.
func costOf(ctx context.Context, t *target) (float64, error) {
	before, err := cpuTime(t.process.pid)
	if err != nil {
		return 0, err
	}
	var results [2]*load.Result
	var errs [2]error
	var both sync.WaitGroup
	for i, p := range []load.Plan{{Model: "m-b600", Rate: healthyRate}, {Model: "fails", Rate: failingRate}} {
		both.Go(func() {
			p.Addr, p.Size, p.Conns, p.Duration, p.Timeout = t.addr, 4<<10, 32, roundLength, requestTimeout
			results[i], errs[i] = load.Run(ctx, p)
		})
	}
	both.Wait()
	after, err := cpuTime(t.process.pid)
	for _, e := range append(errs[:], err) {
		if e != nil {
			return 0, e
		}
	}
	for _, r := range results {
		if r.Failed() > 0 {
			return 0, fmt.Errorf("%s: %v", t.name, r.Failures)
		}
	}
	return microseconds(after-before) / float64(results[0].Answers+results[1].Answers), nil
}

// page does what an open page does, until ctx ends, and counts the events that it got.
func page(ctx context.Context, url string) (events int) {
	ask := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			return nil, err
		}
		return http.DefaultClient.Do(req)
	}
	var stream sync.WaitGroup
	defer stream.Wait()
	stream.Go(func() {
		resp, err := ask("events?last=1000")
		if err != nil {
			return
		}
		defer resp.Body.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := resp.Body.Read(buf)
			for _, b := range buf[:n] {
				if b == '\n' {
					events++ // lines: four an event
				}
			}
			if err != nil {
				events /= 4
				return
			}
		}
	})
	for ctx.Err() == nil {
		for _, path := range []string{"now", "sessions", "targets", "keys"} {
			if resp, err := ask(path); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
		pause(ctx, 2*time.Second)
	}
	return events
}

// interval is the 95 % interval of the median of what these were drawn from, by the
// ranks that it lies between.
func interval(values []float64) (low, high float64) {
	v := slices.Sorted(slices.Values(values))
	n := float64(len(v))
	k := max(0, int(math.Floor((n-1.96*math.Sqrt(n))/2)))
	return v[k], v[len(v)-1-k]
}
