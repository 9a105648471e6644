package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rebound-llm/rebound/recovery"
)

// maxOpen bounds the breakers that are remembered; there is one for each
// model name that a client invents and an upstream fails on.
const maxOpen = 1024

// breakers counts the open breakers when it is asked. A breaker whose period
// is over needs no event to be counted as closed: without traffic there is none.
// It knows what this replica's events say. Safe for concurrent use.
type breakers struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	known map[recovery.Target]bool // from configuration; always shown
	until map[recovery.Target]time.Time
}

var _ prometheus.Collector = (*breakers)(nil)

func newBreakers() *breakers {
	return &breakers{
		desc: prometheus.NewDesc("rebound_breaker_open",
			"Breakers that keep requests away from a target, until their next probe.", []string{"upstream", "model"}, nil),
		until: map[recovery.Target]time.Time{},
	}
}

// name sets the targets that are shown one by one.
func (b *breakers) name(known map[recovery.Target]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = known
}

func (b *breakers) opened(t recovery.Target, until time.Time) {
	t.Key = ""
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.until) >= maxOpen {
		for o, end := range b.until {
			if !now.Before(end) {
				delete(b.until, o)
			}
		}
		if _, ok := b.until[t]; !ok && len(b.until) >= maxOpen {
			return
		}
	}
	b.until[t] = until
}

func (b *breakers) closed(t recovery.Target) {
	t.Key = ""
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.until, t)
}

// Describe implements prometheus.Collector.
func (b *breakers) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }

// Collect implements prometheus.Collector.
func (b *breakers) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	b.mu.Lock()
	open := make(map[recovery.Target]int, len(b.known)+1)
	for t := range b.known {
		open[t] = 0
	}
	for t, until := range b.until {
		if !now.Before(until) {
			continue
		}
		if !b.known[t] {
			t.Model = labelOther
			if !b.known[t] { // that upstream is not configured either
				t.Upstream = labelOther
			}
		}
		open[t]++
	}
	b.mu.Unlock()
	for t, n := range open {
		ch <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, float64(n), t.Upstream, t.Model)
	}
}
