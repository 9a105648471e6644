package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
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

// stretches are after how many interventions the loss of harmful notes is added up, and
// tolerated what it may be of each, in success.
var stretches = []int{200, 500, 1000, 2000}

const tolerated = 0.02

// harm is what learning loses where each note does harm: on average over the first
// interventions of a cell, up to each of stretches, and over those between one and the
// next; and within, the first intervention from which the loss up to there stays below
// tolerated with its whole interval.
type harm struct {
	sum, part []figure
	within    int
}

func costs(priors learn.Priors, perDay float64, runs int, seed uint64) harm {
	r, f := rand.New(rand.NewPCG(seed, 5)), familyOf("harmful")
	last := stretches[len(stretches)-1]
	lost := make([][]float64, last) // by intervention, the sum of each cell so far
	for i := range runs {
		chain := studied[i%len(studied)]
		w, c := f.draw(r, priors[chain]), newCell(priors, chain, perDay, r)
		sum := 0.0
		for n := range last {
			sum += w[""] - c.step(w)
			lost[n] = append(lost[n], sum)
		}
	}
	rate := func(from, to int) figure {
		values := make([]float64, runs)
		for i := range values {
			if values[i] = lost[to-1][i]; from > 0 {
				values[i] -= lost[from-1][i]
			}
			values[i] /= float64(to - from)
		}
		return figureOf(values)
	}
	var out harm
	from := 0
	for _, to := range stretches {
		out.sum, out.part = append(out.sum, rate(0, to)), append(out.part, rate(from, to))
		from = to
	}
	for n := last; n > 0; n-- {
		if g := rate(0, n); g.mean+g.half > tolerated {
			break
		}
		out.within = n
	}
	return out
}

// transfer is the success of a second model's first 50 interventions, as a share of the
// best, after another model had 300 in the same world, and without that.
func transfer(priors learn.Priors, runs int, seed uint64) (with, without figure) {
	r := rand.New(rand.NewPCG(seed, 2))
	var a, b []float64
	for i := range runs {
		chain := studied[i%len(studied)]
		w := familyOf("the other way round").draw(r, priors[chain])
		for _, known := range []bool{true, false} {
			c := newCell(priors, chain, 100, r)
			for range 300 * b2i(known) {
				c.step(w)
			}
			c.model = "second"
			var success []float64
			for range window {
				success = append(success, c.step(w))
			}
			if known {
				a = append(a, mean(success)/w.best())
			} else {
				b = append(b, mean(success)/w.best())
			}
		}
	}
	return figureOf(a), figureOf(b)
}

// twofold is the success of interventions 401 to 600, as a share of the best, where the
// failures are of two kinds, each with its world: where the policy is told the kind, and
// where it is not.
func twofold(priors learn.Priors, runs int, seed uint64, draw func(r *rand.Rand, p map[string]float64) [2]world, tell func(c *cell, kind int)) (with, without figure) {
	r := rand.New(rand.NewPCG(seed, 3))
	var shares [2][]float64
	for i := range runs {
		chain := studied[i%len(studied)]
		worlds := draw(r, priors[chain])
		for j := range shares {
			c := newCell(priors, chain, 100, r)
			var success []float64
			for n := range 600 {
				kind := r.IntN(2)
				if j == 0 {
					tell(c, kind)
				}
				if s := c.step(worlds[kind]); n >= 400 {
					success = append(success, s/worlds[kind].best())
				}
			}
			shares[j] = append(shares[j], mean(success))
		}
	}
	return figureOf(shares[0]), figureOf(shares[1])
}

// worded are the worlds of two wordings: what helps with one is no help with the other.
func worded(_ *rand.Rand, priors map[string]float64) [2]world {
	order := byPrior(priors)
	worlds := [2]world{{"": 0.4}, {"": 0.4}}
	for _, s := range order {
		worlds[0][s], worlds[1][s] = 0.35, 0.35
	}
	worlds[0][order[0]], worlds[1][order[len(order)-1]] = 0.8, 0.8
	return worlds
}

func tellWording(c *cell, kind int) {
	c.template = []string{"no such file", "is a directory"}[kind]
}

// unlike and alike are the worlds of two tasks.
func unlike(r *rand.Rand, priors map[string]float64) [2]world {
	return [2]world{familyOf("any").draw(r, priors), familyOf("any").draw(r, priors)}
}

func alike(r *rand.Rand, priors map[string]float64) [2]world {
	w := familyOf("any").draw(r, priors)
	return [2]world{w, w}
}

func tellTask(c *cell, kind int) {
	c.task = []recovery.Task{recovery.Exploring, recovery.Changing}[kind]
}

func b2i(b bool) int { return slices.Index([]bool{false, true}, b) }
