package learn

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What is found among the slowest is what sorting all of them shows.
func TestPercentile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		r := ring{n: 1 + rng.IntN(64)}
		for i := range r.n {
			r.d[i] = time.Duration(1 + rng.IntN(50))
		}
		sorted := slices.Clone(r.d[:r.n])
		slices.Sort(sorted)
		for _, p := range []int{50, 95, 99} {
			if got, want := r.percentile(p), sorted[r.n*p/100]; got != want {
				t.Fatalf("%d %% of %v: %v, want %v", p, sorted, got, want)
			}
		}
	}
}
