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

// ReverseProxy is what they are measured by: its ratio to nginx moves from machine to machine.
var gates = []gate{
	{"1 KB: CPU per request at most 1.1 times that of ReverseProxy", "cpu-1k", overReverseProxy, 1.1},
	{"agent of 57 KB: CPU per request at most 1.5 times that of ReverseProxy", "cpu-agent-57k", overReverseProxy, 1.5},
	{"agent of 115 KB: CPU per request at most twice that of ReverseProxy", "cpu-agent-115k", overReverseProxy, 2},
	{"agent of 565 KB: CPU per request at most 1.5 times that of ReverseProxy", "cpu-agent-565k", overReverseProxy, 1.5},
	{"agent of 57 KB, streamed: CPU per request at most 1.3 times that of ReverseProxy", "cpu-agent-stream", overReverseProxy, 1.3},
	{"stream of 50 events: CPU per request at most 1.1 times that of ReverseProxy", "cpu-stream", overReverseProxy, 1.1},
	{"2,000 streams: at most 140 MB resident", "streams", column{metric: peakMemory}, 140},
	{"2,000 streams: none fails", "streams", column{metric: failures}, 0},
	{"idle: at most 30 MB resident", "startup", column{metric: idleMemory, digits: 1}, 30},
	{"start: first answer after at most 50 ms", "startup", column{metric: firstAnswer, digits: 1}, 50},
}

var overReverseProxy = column{metric: cpuPerRequest, over: reverseProxy, digits: 2}

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
