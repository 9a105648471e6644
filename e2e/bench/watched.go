//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// watched measures what it costs to be watched: two gateways of the same program, on
// one core, get the same load at the same time, many short rounds. One has a collector
// that takes one trace in a hundred, and an open page. The ratio of their CPU per request
// is taken in each round: what else the machine does in a second, it does to both.
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
			"models: {fails: {targets: [{upstream: faulty, model: m}]}}\nbreaker: {min_requests: 1000000, resend_min: 1000}\nrecovery: {patience: 1s, backoff_min: 10ms, backoff_max: 20ms}\n%s",
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
		var cost [2]float64
		var errs [2]error
		var both sync.WaitGroup
		for i, t := range []*target{off, on} {
			both.Go(func() { cost[i], errs[i] = costOf(ctx, t) })
		}
		both.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			leave()
			return err
		}
		for i := range costs {
			if round >= 2 {
				costs[i] = append(costs[i], cost[i])
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
	mean, low, high := meanRatio(ratios)
	alone, _ := spreadOf(costs[0])
	seen, _ := spreadOf(costs[1])
	ratio, _ := spreadOf(ratios)
	fmt.Printf("%d requests a second, %d of them with a failed attempt; %d rounds of %v\n", healthyRate+failingRate, failingRate, len(ratios), roundLength)
	fmt.Printf("CPU per request: alone %.0f µs (%.0f to %.0f), watched %.0f µs (%.0f to %.0f)\n", alone.Median, alone.Min, alone.Max, seen.Median, seen.Min, seen.Max)
	fmt.Printf("ratio: mean %.3f, 95 %% interval %.3f to %.3f; median %.3f, single rounds %.3f to %.3f\n", mean, low, high, ratio.Median, ratio.Min, ratio.Max)
	fmt.Printf("the page got %d events; other programs kept %.1f cores busy\n", events, after.others(before))
	switch {
	case events == 0:
		fmt.Println("the page saw nothing: this says nothing")
	case high <= watchedBound:
		fmt.Printf("it costs less than %.2f\n", watchedBound)
		return nil
	case low > watchedBound:
		fmt.Printf("it costs more than %.2f\n", watchedBound)
	default:
		fmt.Printf("more rounds have to tell whether it costs more than %.2f: -rounds\n", watchedBound)
	}
	return errGates
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
		for _, path := range []string{"now", "approvals"} {
			if resp, err := ask(path); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
		pause(ctx, 2*time.Second)
	}
	return events
}

// meanRatio is the mean of ratios, and the 95 % interval of what they are drawn from, by
// Student's t of their logarithms: a ratio and its inverse are equally far from 1.
func meanRatio(ratios []float64) (mean, low, high float64) {
	n, sum, squares := float64(len(ratios)), 0.0, 0.0
	for _, r := range ratios {
		sum += math.Log(r)
	}
	m := sum / n
	for _, r := range ratios {
		squares += (math.Log(r) - m) * (math.Log(r) - m)
	}
	half := student(n-1) * math.Sqrt(squares/(n-1)/n)
	return math.Exp(m), math.Exp(m - half), math.Exp(m + half)
}

// student is the 97.5 % quantile of Student's t with nu degrees of freedom, three or
// more, by the expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5). It is
// low by 0.2 % for three degrees, and by less for more.
func student(nu float64) float64 {
	const z = 1.959964
	const z3, z5, z7, z9 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z, z * z * z * z * z * z * z * z * z
	return z + (z3+z)/(4*nu) + (5*z5+16*z3+3*z)/(96*nu*nu) + (3*z7+19*z5+17*z3-15*z)/(384*nu*nu*nu) +
		(79*z9+776*z7+1482*z5-1920*z3-945*z)/(92160*nu*nu*nu*nu)
}
