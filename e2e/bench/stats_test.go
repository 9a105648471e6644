//go:build linux

package main

import (
	"math"
	"testing"
	"time"
)

func TestSpreadOf(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   spread
	}{
		"one":      {[]float64{3}, spread{3, 3, 3}},
		"odd":      {[]float64{9, 1, 4}, spread{4, 1, 9}},
		"even":     {[]float64{9, 1, 4, 2}, spread{3, 1, 9}},
		"negative": {[]float64{-5, 1, -7}, spread{-5, -7, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			first := test.values[0]
			if got, found := spreadOf(test.values); !found || got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if test.values[0] != first {
				t.Error("the caller's values were reordered")
			}
		})
	}
	if got, found := spreadOf(nil); found {
		t.Errorf("a spread of nothing: %+v", got)
	}
}

func TestQuantile(t *testing.T) {
	var hundred []time.Duration
	for i := 100; i >= 1; i-- {
		hundred = append(hundred, time.Duration(i)*time.Microsecond)
	}
	for _, test := range []struct {
		q    float64
		want float64
	}{{0, 1}, {0.5, 50}, {0.501, 51}, {0.99, 99}, {0.999, 100}, {1, 100}} {
		if got := quantile(hundred, test.q); got != test.want {
			t.Errorf("quantile(1..100 µs, %v) = %v, want %v", test.q, got, test.want)
		}
	}
	if got := quantile([]time.Duration{1500 * time.Nanosecond}, 0.5); got != 1.5 {
		t.Errorf("of one: %v", got)
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of none: %v", got)
	}
}
