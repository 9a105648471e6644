//go:build linux

package soak_test

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func (v verdict) String() string {
	return [...]string{"right", "honest errors", "left by the client", "lost", "corrupted", "crossed"}[v]
}

// maxExamples limits the failures that are reported in full.
const maxExamples = 12

// tally counts the outcomes of clients' requests. It is safe for concurrent use.
type tally struct {
	waited atomic.Int64 // turns that no client was free to take

	mu       sync.Mutex
	faults   map[string]*[verdicts]int
	again    int // answers that took more than one attempt
	events   map[string]int
	examples []string
}

func newTally() *tally { return &tally{faults: map[string]*[verdicts]int{}, events: map[string]int{}} }

func (t *tally) count(p *plan, v verdict, why string, a *answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.faults[p.fault.name]
	if row == nil {
		row = new([verdicts]int)
		t.faults[p.fault.name] = row
	}
	row[v]++
	if p.asked.Load() > 1 {
		t.again++
	}
	if v >= lost && len(t.examples) < maxExamples {
		t.examples = append(t.examples, fmt.Sprintf("%s: %s, fault %q, %d attempts: %s\n%s", v, p.id, p.fault.name, p.asked.Load(), why, a))
	}
}

func (t *tally) did(event string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events[event]++
}

func (t *tally) total(v verdict) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range t.faults {
		n += row[v]
	}
	return n
}

func (t *tally) String() string {
	var parts []string
	for v := range verdicts {
		parts = append(parts, fmt.Sprintf("%s %d", v, t.total(v)))
	}
	return strings.Join(parts, ", ")
}

// holding is one resource of a gateway: its medians in the second and the last quarter of the run.
type holding struct {
	gateway, what string
	second, last  float64
	slack         float64 // allowed fluctuation
}

// flat reports whether the resource grew no more than it fluctuates.
func (h holding) flat() bool { return h.last <= 1.1*h.second+h.slack }

func resources(gates []*gateway, samples [][]sample) (out []holding) {
	for i, g := range gates {
		n := len(samples[i]) / 4
		if n == 0 {
			continue
		}
		for _, k := range []struct {
			what  string
			slack float64
			of    func(sample) float64
		}{
			{"resident memory, MiB", 8, func(s sample) float64 { return s.rss }},
			{"live heap, MiB", 2, func(s sample) float64 { return s.heap }},
			{"goroutines", 30, func(s sample) float64 { return s.goroutines }},
			{"descriptors", 30, func(s sample) float64 { return s.descriptors }},
		} {
			out = append(out, holding{g.name, k.what, median(samples[i][n:2*n], k.of), median(samples[i][3*n:], k.of), k.slack})
		}
	}
	return out
}

func median(samples []sample, of func(sample) float64) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// report is the text of docs/reliability.md.
func (s *soak) report(took time.Duration, holds []holding, over *overload, failed bool) []byte {
	redis, _ := exec.Command("redis-server", "--version").Output()
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Reliability\n\n`make soak` writes this page. %d clients send requests to five gateways for %v, while the scripted upstreams produce every fault they\n", *clients, duration)
	p("know, and stores and gateways are killed, paused, moved and replaced. Each client puts a nonce into its prompts, tools and expected\n")
	p("answers, so that both ends detect an answer, or part of one, that belongs to another client.\n\n")
	p("    go test ./e2e/soak -run TestSoak -timeout 0 -args -for %v -rate %v -seed %d%s\n\n", duration, *rate, *seed, map[bool]string{true: " -before PROGRAM"}[*before != ""])
	p("Version %s, %s, %d cores, %s. The run took %v.\n\n", s.version, runtime.Version(), runtime.NumCPU(), strings.Join(strings.Fields(string(redis))[:3], " "), took.Round(time.Second))
	p("**The run %s.**\n\n", map[bool]string{true: "failed", false: "passed"}[failed])
	p("## Answers\n\n")
	all := 0
	for v := range verdicts {
		all += s.tally.total(v)
	}
	p("| requests | %s |\n|---%s|\n| %d ", strings.Join(names(), " | "), strings.Repeat("|---", int(verdicts)), all)
	for v := range verdicts {
		p("| %d ", s.tally.total(v))
	}
	p("|\n\n%d of them took more than one attempt. %d requests reached an upstream with content of another client. A *lost* request got neither the complete right answer nor an\n", s.tally.again, s.up.mixed.Load())
	p("honest error where the script allows one. A *corrupted* answer differs from what the script says.\n\n")
	p("## Memory and descriptors\n\nMedians of the second and the last quarter of the run. The live heap is measured after a garbage collection.\n")
	if took >= watched {
		p("Bounded caches were full before the measurement: 48 MiB of parsed messages, 65,536 token counts and 10,000 events in each gateway.\n")
	}
	p("\n")
	p("| gateway | | second quarter | last quarter |\n|---|---|---|---|\n")
	for _, h := range holds {
		p("| %s | %s | %.0f | %.0f%s |\n", h.gateway, h.what, h.second, h.last, map[bool]string{true: ", grows"}[took >= watched && !h.flat()])
	}
	p("\n## Disturbances\n\n| | times |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.tally.events)) {
		p("| %s | %d |\n", name, s.tally.events[name])
	}
	if *before != "" {
		p("\nThe gateway that is replaced alternates between the previous version and this one; it shares a Redis with a gateway of this version.\n")
	}
	over.report(p)
	p("\n## Faults\n\n| fault | %s |\n|---%s|\n", strings.Join(names(), " | "), strings.Repeat("|---", int(verdicts)))
	for i := range faults {
		if row := s.tally.faults[faults[i].name]; row != nil {
			p("| %s ", faults[i].name)
			for _, n := range row {
				p("| %d ", n)
			}
			p("|\n")
		}
	}
	return b.Bytes()
}

func names() (out []string) {
	for v := range verdicts {
		out = append(out, v.String())
	}
	return out
}
