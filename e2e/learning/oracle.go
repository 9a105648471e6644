package main

import (
	"math"
	"math/rand/v2"

	"github.com/rebound-llm/rebound/recovery/learn"
)

// imagined is how many worlds an oracle has in mind.
const imagined = 5000

// oracle is a sampler that knows the kinds of worlds, all equally common, and has only
// to find out which it is in: a measure of what finding that out costs.
type oracle struct {
	worlds []world
	weight []float64 // logarithm of the likelihood of what was seen
}

func newOracle(r *rand.Rand, priors map[string]float64, kinds []family) *oracle {
	o := &oracle{weight: make([]float64, imagined)}
	for i := range imagined {
		o.worlds = append(o.worlds, kinds[i%len(kinds)].draw(r, priors))
	}
	return o
}

// choose is the best arm of a world drawn from those that explain what was seen.
func (o *oracle) choose(r *rand.Rand) string {
	top, at := math.Inf(-1), 0
	for i, w := range o.weight {
		// The largest of weights with Gumbel noise is a draw from their exponentials.
		if v := w - math.Log(-math.Log(1-r.Float64())); v > top {
			top, at = v, i
		}
	}
	return o.worlds[at].arm()
}

func (o *oracle) see(arm, outcome string) {
	for i, w := range o.worlds {
		if p := w[arm]; outcome == learn.Failure {
			o.weight[i] += math.Log(max(1-1.1*p, 1e-3))
		} else {
			o.weight[i] += math.Log(p)
		}
	}
}

// bestKnown is what an oracle reaches that begins like the gateway: at 200 as a share of the
// best, and its first 200 against no notes.
func bestKnown(priors learn.Priors, f family, runs int, seed uint64) (at, against figure) {
	r := rand.New(rand.NewPCG(seed, 4))
	var share, diff []float64
	for i := range runs {
		chain := studied[i%len(studied)]
		w, o := f.draw(r, priors[chain]), newOracle(r, priors[chain], kinds())
		var success []float64
		for n := range early {
			arm := byPrior(priors[chain])[0]
			if n >= 10 {
				arm = o.choose(r)
			}
			if r.Float64() < heldOut {
				arm = ""
			}
			o.see(arm, w.outcome(r, arm))
			success = append(success, w[arm])
		}
		share = append(share, mean(success[early-window:])/w.best())
		diff = append(diff, mean(success)-w[""])
	}
	return figureOf(share), figureOf(diff)
}
