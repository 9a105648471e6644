//go:build linux

package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMeanRatio(t *testing.T) {
	if mean, low, high := meanRatio([]float64{1.04, 1.04, 1.04}); mean != low || mean != high || math.Abs(mean-1.04) > 1e-9 {
		t.Errorf("of equal ratios: %v, %v to %v", mean, low, high)
	}
	if mean, low, high := meanRatio([]float64{2, 0.5, 2, 0.5}); math.Abs(mean-1) > 1e-9 || math.Abs(low*high-1) > 1e-9 || math.Abs(high-3.573) > 0.01 {
		t.Errorf("of ratios and their inverses: %v, %v to %v", mean, low, high) // ln 2 times 2/sqrt 3, over 2, times t = 3.182 is ln 3.57
	}
	// The interval has the true ratio in it in 95 of 100 runs.
	random := rand.New(rand.NewPCG(1, 2))
	inside := 0
	for range 1000 {
		ratios := make([]float64, 30)
		for i := range ratios {
			ratios[i] = 1.03 * math.Exp(random.NormFloat64()/10)
		}
		if _, low, high := meanRatio(ratios); low <= 1.03 && 1.03 <= high {
			inside++
		}
	}
	if inside < 930 || inside > 970 {
		t.Errorf("%d of 1000 intervals have the true ratio in them", inside)
	}
}
