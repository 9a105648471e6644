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
	// Of tables of Student's t.
	for nu, want := range map[float64]float64{3: 3.1824, 5: 2.5706, 9: 2.2622, 29: 2.0452, 239: 1.9699} {
		if got := student(nu); math.Abs(got/want-1) > 0.002 {
			t.Errorf("with %v degrees of freedom the quantile is %v, not %v", nu, got, want)
		}
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
