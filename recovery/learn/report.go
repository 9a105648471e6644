package learn

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rebound-llm/rebound/recovery"
)

// Report says what is known, after reading what other replicas know.
func (o *Outcomes) Report(ctx context.Context) (recovery.Learned, error) {
	off := recovery.Learned{Mode: o.cfg.Load().mode, Cells: []recovery.LearnedCell{}, Patterns: []recovery.LearnedPattern{}}
	if off.Mode == OutcomesOff {
		return off, nil
	}
	return do(ctx, o, func(context.Context) (out recovery.Learned, err error) {
		out.Mode, out.Observations, out.Refused, out.Open, out.Lost = off.Mode, len(o.known.list), o.known.refused, len(o.open), int(o.lost.Load())
		out.Cells, out.Patterns = o.beliefs.Load().report()
		return out, nil
	})
}

func (b *Beliefs) report() (cells []recovery.LearnedCell, patterns []recovery.LearnedPattern) {
	cells, patterns = []recovery.LearnedCell{}, []recovery.LearnedPattern{}
	for key, c := range b.models {
		if strategies := b.strategies(key.chain); len(strategies) > 0 {
			cells = append(cells, b.reportCell(key, c, strategies))
		}
	}
	slices.SortFunc(cells, func(x, y recovery.LearnedCell) int {
		return cmp.Or(cmp.Compare(x.Chain, y.Chain), cmp.Compare(x.Model, y.Model))
	})
	for key := range b.patterns {
		ask, strategies := b.sure, b.strategies(key.chain)
		if b.stuck(key.chain) {
			ask, strategies = b.instead, alone
		}
		if p, ok := ask(key, strategies); ok {
			patterns = append(patterns, p)
		}
	}
	slices.SortFunc(patterns, func(x, y recovery.LearnedPattern) int {
		return cmp.Or(cmp.Compare(x.Chain, y.Chain), cmp.Compare(x.Template, y.Template), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Model, y.Model))
	})
	return cells, patterns
}

// alone are the strategies that patterns may have where an agent is stuck.
var alone = []string{recovery.Hint, string(recovery.PlanRetry), string(recovery.PlanOtherTool), string(recovery.PlanAdjust)}

// strategies are those of a chain, in its order; without an order, those that were tried.
func (b *Beliefs) strategies(chain string) []string {
	var out []string
	for s := range b.priors[chain] {
		if !b.stuck(chain) || b.chains[chain].of(s).n > 0 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(x, y string) int {
		return cmp.Or(cmp.Compare(b.priors[chain][y], b.priors[chain][x]), cmp.Compare(x, y))
	})
	return out
}

func (b *Beliefs) reportCell(key cellKey, c *cell, strategies []string) recovery.LearnedCell {
	out := recovery.LearnedCell{Chain: key.chain, Model: key.of, Decision: "learned", Censored: c.censored}
	for _, s := range strategies {
		out.Arms = append(out.Arms, b.reportArm(key, c, s))
	}
	slices.SortStableFunc(out.Arms, func(x, y recovery.LearnedArm) int { return cmp.Compare(y.Rate, x.Rate) })
	with, without := b.posterior(key.chain, key.of, out.Arms[0].Strategy), b.posterior(key.chain, key.of, none)
	out.Arms = append(out.Arms, b.reportArm(key, c, none))
	switch {
	case b.chains[key.chain].count < firstSteps:
		out.Decision = "chain"
	case b.uselessAlways(key, strategies):
		out.Decision = "observe"
	}
	out.P = 1 - without.Mean()
	out.Net = with.Mean() - without.Mean()
	half := 1.96 * math.Sqrt(with.Variance()+without.Variance())
	out.CI = [2]float64{max(-1, out.Net-half), min(1, out.Net+half)}
	out.R, out.D = max(0, out.Net)/out.P, max(0, -out.Net)/(1-out.P)
	return out
}

// uselessAlways reports whether notes are useless at each task that was seen.
func (b *Beliefs) uselessAlways(key cellKey, strategies []string) bool {
	for _, task := range []recovery.Task{"", recovery.Exploring, recovery.Changing} {
		q := recovery.Question{Chain: key.chain, Model: key.of, Task: task, Strategies: strategies}
		if b.tasks[taskKey{key, string(task)}] != nil && !b.useless(q) {
			return false
		}
	}
	return true
}

func (b *Beliefs) reportArm(key cellKey, c *cell, arm string) recovery.LearnedArm {
	p := b.posterior(key.chain, key.of, arm)
	return recovery.LearnedArm{Strategy: arm, Observations: c.of(arm).n, Rate: p.Mean(), CI: interval(p)}
}

func interval(p distuv.Beta) [2]float64 { return [2]float64{p.Quantile(0.025), p.Quantile(0.975)} }
