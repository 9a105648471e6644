//go:build linux

package main

import (
	"math"
	"slices"
	"time"
)

// spread is a figure's median over the rounds, and its extremes.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns false for no values.
func spreadOf(values []float64) (spread, bool) {
	if len(values) == 0 {
		return spread{}, false
	}
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	median := v[middle]
	if len(v)%2 == 0 {
		median = (v[middle-1] + v[middle]) / 2
	}
	return spread{Median: median, Min: v[0], Max: v[len(v)-1]}, true
}

// quantile is the smallest of the durations that at least the share q of them
// does not exceed (nearest rank), in microseconds; NaN for none. It sorts them.
func quantile(durations []time.Duration, q float64) float64 {
	if len(durations) == 0 {
		return math.NaN()
	}
	slices.Sort(durations)
	rank := int(math.Ceil(q * float64(len(durations))))
	return microseconds(durations[min(max(rank, 1), len(durations))-1])
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
