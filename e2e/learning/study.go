package main

import (
	"math"
	"math/rand/v2"

	"github.com/rebound-llm/rebound/recovery/learn"
)

// The stretches of interventions that figures are of.
const (
	early   = 200  // what has to be learned by then
	window  = 50   // the interventions before it that are measured
	settled = 1000 // when the world changes
	drift   = 300  // what has to be learned anew by then
)

// studied are the chains that have more than one strategy and need no permission.
var studied = []string{"file_not_found", "timeout", "invalid_arguments", "permission_denied", "network_error", "rate_limited", "edit_failed"}

// figure is a mean over runs, with its 95 % interval.
type figure struct{ mean, half float64 }

func figureOf(values []float64) figure {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		squares += (v - sum/n) * (v - sum/n)
	}
	return figure{sum / n, 1.96 * math.Sqrt(squares/max(1, n-1)/n)}
}

// row is what a study of one family and rate found.
type row struct {
	family                family
	perDay                float64
	early, late, drifted  figure // success as a share of the best fixed policy's
	firstDiff, restDiff   figure // success minus that without notes: of the first 200, of the next 800
	fixedEarly, fixedLate figure // of the chain's own order, as a share of the best
}

// study runs cells of one family.
func study(priors learn.Priors, f family, perDay float64, runs int, seed uint64) row {
	type of struct{ early, late, drifted, first, rest, fixed, fixedAfter []float64 }
	var got of
	r := rand.New(rand.NewPCG(seed, uint64(perDay)))
	for i := range runs {
		chain := studied[i%len(studied)]
		w, c := f.draw(r, priors[chain]), newCell(priors, chain, perDay, r)
		success := make([]float64, 0, settled)
		for range settled {
			success = append(success, c.step(w))
		}
		usual := byPrior(priors[chain])[0]
		got.early = append(got.early, mean(success[early-window:early])/w.best())
		got.late = append(got.late, mean(success[settled-early:])/w.best())
		got.first = append(got.first, mean(success[:early])-w[""])
		got.rest = append(got.rest, mean(success[early:])-w[""])
		got.fixed = append(got.fixed, w[usual]/w.best())
		w = familyOf(f.then).draw(r, priors[chain])
		success = success[:0]
		for range drift {
			success = append(success, c.step(w))
		}
		got.drifted = append(got.drifted, mean(success[drift-window:])/w.best())
		got.fixedAfter = append(got.fixedAfter, w[usual]/w.best())
	}
	return row{f, perDay, figureOf(got.early), figureOf(got.late), figureOf(got.drifted), figureOf(got.first), figureOf(got.rest), figureOf(got.fixed), figureOf(got.fixedAfter)}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
