//go:build linux

package main

import "fmt"

// gate is a limit for Rebound: what a change must not cost.
type gate struct {
	name     string
	scenario string
	column   column
	limit    float64
}

var gates = []gate{
	{"1 KB: CPU per request at most that of ReverseProxy", "cpu-1k", column{metric: cpuPerRequest, over: reverseProxy, digits: 2}, 1},
	{"1 KB: CPU per request at most 3.3 times that of nginx", "cpu-1k", column{metric: cpuPerRequest, over: nginx, digits: 2}, 3.3},
	{"agent of 57 KB: CPU per request at most 3 times that of nginx", "cpu-agent-57k", column{metric: cpuPerRequest, over: nginx, digits: 2}, 3},
	{"agent of 115 KB: CPU per request at most 3.5 times that of nginx", "cpu-agent-115k", column{metric: cpuPerRequest, over: nginx, digits: 2}, 3.5},
	{"agent of 565 KB: CPU per request at most 3 times that of nginx", "cpu-agent-565k", column{metric: cpuPerRequest, over: nginx, digits: 2}, 3},
	{"stream of 50 events: CPU per request at most 1.25 times that of nginx", "cpu-stream", column{metric: cpuPerRequest, over: nginx, digits: 2}, 1.25},
	{"streams: at most 50 µs more than nginx added to a chunk (p50)", "chunks", column{metric: chunkP50, minus: nginx}, 50},
	{"2,000 streams: at most 145 MB resident", "streams", column{metric: peakMemory}, 145},
	{"2,000 streams: none fails", "streams", column{metric: failures}, 0},
	{"start: first answer after at most 50 ms", "startup", column{metric: firstAnswer, digits: 1}, 50},
}

// verdict is a gate with what was measured.
type verdict struct {
	Gate     string  `json:"gate"`
	Limit    float64 `json:"limit"`
	Value    *spread `json:"value"` // nil if it was not measured
	Met      bool    `json:"met"`   // by the median
	rendered string
}

func checkGates(r *results) []verdict {
	var verdicts []verdict
	for _, g := range gates {
		v := verdict{Gate: g.name, Limit: g.limit, rendered: "not measured"}
		if value, found := r.value(g.scenario, rebound, g.column); found {
			v.Value, v.Met = &value, value.Median <= g.limit
			v.rendered = render(value, g.column.digits)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func allMet(verdicts []verdict) bool {
	for _, v := range verdicts {
		if !v.Met {
			return false
		}
	}
	return true
}

func (v verdict) outcome() string {
	switch {
	case v.Value == nil:
		return "not measured"
	case v.Met:
		return "met"
	}
	return fmt.Sprintf("not met (limit %g)", v.Limit)
}
