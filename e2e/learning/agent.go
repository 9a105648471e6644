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
		{"either", "each strategy adds 20 points or takes 20", func(r *rand.Rand, p map[string]float64) world {
			return effects(between(r, 0.3, 0.6), p, func(int) float64 { return []float64{-0.2, 0.2}[r.IntN(2)] })
		}, "any"},
	}
}

// kinds are the families by which the policy was chosen: all but the last.
func kinds() []family { return families()[:5] }

func familyOf(name string) family {
	list := families()
	return list[slices.IndexFunc(list, func(f family) bool { return f.name == name })]
}

func (w world) best() float64 { return slices.Max(slices.Collect(maps.Values(w))) }

// arm is the arm with the best chance, none before others.
func (w world) arm() (arm string) {
	for name, p := range w {
		if p > w[arm] || p == w[arm] && name < arm {
			arm = name
		}
	}
	return arm
}

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

// cell is a row of interventions: one chain and one model.
type cell struct {
	priors   learn.Priors
	chain    string
	model    string
	template string
	task     recovery.Task
	rate     float64 // interventions a day
	r        *rand.Rand
	now      time.Time
	corpus   []learn.Observation
	n        int
	beliefs  *learn.Beliefs
	stale    int // observations since the beliefs were made
}

func newCell(priors learn.Priors, chain string, perDay float64, r *rand.Rand) *cell {
	return &cell{priors: priors, chain: chain, model: "m", rate: perDay, r: r, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// heldOut is the share of sessions that get no note, as the gateway's default.
const heldOut = 0.02

// step is one intervention: the policy chooses, the agent reacts, the policy learns.
// It is the chance of success that the choice had.
func (c *cell) step(w world) float64 {
	c.n++
	c.now = c.now.Add(time.Duration(float64(24*time.Hour) / c.rate))
	session := fmt.Sprintf("s%d", c.n)
	if c.beliefs == nil || c.stale > len(c.corpus)/100 { // as a gateway that has much to do
		c.beliefs, c.stale = learn.Fold(c.priors, c.corpus, c.now), 0
	}
	c.stale++
	got := c.beliefs.Choose(recovery.Question{Session: session, Model: c.model, Tool: "bash", Task: c.task, Chain: c.chain, Fingerprint: c.r.Uint64(), Strategies: byPrior(c.priors[c.chain])}, c.template)
	arm := got.Strategies[0]
	if got.Withhold || c.r.Float64() < heldOut {
		arm = ""
	}
	c.corpus = append(c.corpus, learn.Observation{V: 1, ID: session, Session: session, Time: c.now.Unix(), Chain: c.chain, Kind: "shell", Model: c.model,
		Template: c.template, Task: string(c.task), Strategy: arm, Outcome: w.outcome(c.r, arm)})
	return w[arm]
}
