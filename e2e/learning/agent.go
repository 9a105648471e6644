package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/learn"
)

// world is how the agents of a run react, which the policy does not know: the chance
// of success for each strategy, and for no note ("").
type world map[string]float64

// family is a kind of world.
type family struct {
	name, what string
	draw       func(r *rand.Rand, priors map[string]float64) world
	then       string // the family of the world after the drift
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// effects is a world in which each strategy changes an agent's own chance by so much.
func effects(own float64, priors map[string]float64, effect func(rank int) float64) world {
	w := world{"": own}
	for rank, name := range byPrior(priors) {
		w[name] = min(max(own+effect(rank), 0.05), 0.95)
	}
	return w
}

// byPrior is the strategies of a chain in its order.
func byPrior(priors map[string]float64) []string {
	return slices.SortedFunc(maps.Keys(priors), func(a, b string) int {
		return cmp.Or(cmp.Compare(priors[b], priors[a]), cmp.Compare(a, b))
	})
}

func families() []family {
	return []family{
		{"as the chain says", "the first strategy adds 30 points, each later one 15 less", func(r *rand.Rand, p map[string]float64) world {
			return effects(between(r, 0.3, 0.5), p, func(rank int) float64 { return 0.3 - 0.15*float64(rank) })
		}, "the other way round"},
		{"the other way round", "the last strategy adds 30 points, each earlier one 15 less", func(r *rand.Rand, p map[string]float64) world {
			return effects(between(r, 0.3, 0.5), p, func(rank int) float64 { return 0.3 - 0.15*float64(len(p)-1-rank) })
		}, "as the chain says"},
		{"any", "each strategy adds between -20 and 40 points", func(r *rand.Rand, p map[string]float64) world {
			return effects(between(r, 0.2, 0.6), p, func(int) float64 { return between(r, -0.2, 0.4) })
		}, "any"},
		{"no effect", "no note changes anything", func(r *rand.Rand, p map[string]float64) world {
			return effects(between(r, 0.3, 0.7), p, func(int) float64 { return 0 })
		}, "any"},
		{"harmful", "each note takes 5 to 25 points", func(r *rand.Rand, p map[string]float64) world {
			return effects(between(r, 0.4, 0.7), p, func(int) float64 { return between(r, -0.25, -0.05) })
		}, "as the chain says"},
	}
}

func familyOf(name string) family {
	list := families()
	return list[slices.IndexFunc(list, func(f family) bool { return f.name == name })]
}

func (w world) best() float64 { return slices.Max(slices.Collect(maps.Values(w))) }

// outcome draws what a session brings; one in ten successes is another way's.
func (w world) outcome(r *rand.Rand, arm string) string {
	switch u, p := r.Float64(), w[arm]; {
	case u < 0.9*p:
		return learn.Success
	case u < 1.1*p: // half of it counts: the mean is p
		return learn.OtherWay
	}
	return learn.Failure
}

// chains are those of the program, with what they say of their strategies.
func chains() (learn.Priors, error) {
	base, err := configs.Chains()
	if err != nil {
		return nil, err
	}
	stage, err := annotate.New(annotate.Defaults(), base, nil)
	if err != nil {
		return nil, err
	}
	return stage.Priors(), nil
}

// cell is a row of interventions: one chain, model and gateway key.
type cell struct {
	priors learn.Priors
	chain  string
	rate   float64 // interventions a day
	r      *rand.Rand
	now    time.Time
	corpus []learn.Observation
	n      int
	counts *learn.Counts
	stale  int // observations since they were counted
}

func newCell(priors learn.Priors, chain string, perDay float64, r *rand.Rand) *cell {
	return &cell{priors: priors, chain: chain, rate: perDay, r: r, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// heldOut is the share of sessions that get no note, as the gateway's default.
const heldOut = 0.02

// step is one intervention: the gateway chooses, the agent reacts, the gateway learns.
// It is the chance of success that the choice had.
func (c *cell) step(w world) float64 {
	c.n++
	c.now = c.now.Add(time.Duration(float64(24*time.Hour) / c.rate))
	session := fmt.Sprintf("s%d", c.r.Uint64())
	if c.counts == nil || c.stale > len(c.corpus)/30 { // as a gateway that has much to do
		c.counts, c.stale = learn.Fold(c.priors, c.corpus, c.now), 0
	}
	c.stale++
	got := c.counts.Choose(recovery.Question{Session: session, Model: "m", Chain: c.chain, Strategies: byPrior(c.priors[c.chain])}, "")
	arm := got.Strategies[0]
	if got.Withhold || c.r.Float64() < heldOut {
		arm = ""
	}
	c.corpus = append(c.corpus, learn.Observation{V: 1, ID: session, Session: session, Time: c.now.Unix(), Chain: c.chain, Model: "m", Strategy: arm, Outcome: w.outcome(c.r, arm)})
	return w[arm]
}
