//go:build linux

package main

import "math"

// sample is what one phase measured: one target in one round of one scenario.
type sample map[metric]float64

// metric names a figure; its unit is part of the name.
type metric string

const (
	cpuPerRequest metric = "cpu_us_per_request"
	cpuPerChunk   metric = "cpu_us_per_chunk"
	perSecond     metric = "requests_per_second"
	latencyP50    metric = "latency_p50_us"
	latencyP99    metric = "latency_p99_us"
	chunkP50      metric = "chunk_delay_p50_us"
	chunkP99      metric = "chunk_delay_p99_us"
	requests      metric = "requests"
	failures      metric = "failures"
	idleMemory    metric = "idle_rss_mb"
	peakMemory    metric = "peak_rss_mb"
	perStream     metric = "rss_kb_per_stream"
	firstAnswer   metric = "first_answer_ms"
)

// set keeps values that were measured: quantiles of nothing are not.
func (s sample) set(m metric, v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		s[m] = v
	}
}

// column is a figure of one target, or its comparison with the same figure of
// another target in the same round.
type column struct {
	head   string
	metric metric
	over   string // ratio to this target
	minus  string // difference from this target
	digits int
}

// results are the samples of a run, in the order in which they were taken.
type results struct {
	scenarios []*scenario
	samples   map[string]map[string][]sample // by scenario's key and target; index is the round
}

func newResults() *results {
	return &results{samples: make(map[string]map[string][]sample)}
}

func (r *results) add(s *scenario, target string, taken sample) {
	if r.samples[s.key] == nil {
		r.samples[s.key] = make(map[string][]sample)
		r.scenarios = append(r.scenarios, s)
	}
	r.samples[s.key][target] = append(r.samples[s.key][target], taken)
}

// value is a column's figure for one target; false if it was not measured, or
// would compare a target with itself.
func (r *results) value(scenario, target string, c column) (spread, bool) {
	base := c.over + c.minus // one of them is empty
	if base == target {
		return spread{}, false
	}
	var values []float64
	for round, own := range r.samples[scenario][target] {
		v, found := own[c.metric]
		if !found {
			continue
		}
		if base != "" {
			others := r.samples[scenario][base]
			if round >= len(others) {
				continue
			}
			other, found := others[round][c.metric]
			if !found || c.over != "" && other == 0 {
				continue
			}
			if c.over != "" {
				v /= other
			} else {
				v -= other
			}
		}
		values = append(values, v)
	}
	return spreadOf(values)
}
