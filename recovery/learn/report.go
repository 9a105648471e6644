package learn

import (
	"cmp"
	"context"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// Known returns the strategy that can replace a planner's, if one is known to help. The caller decides by its
// lower bound whether that is enough.
func (o *Outcomes) Known(q recovery.Question) (recovery.LearnedPattern, bool) {
	if o.rules.Load().mode != OutcomesAct || q.Session == "" {
		return recovery.LearnedPattern{}, false
	}
	return o.counts.Load().Known(q, o.parts.Vocabulary().Template(q.Line))
}

// Report returns what is known, after reading the log of all replicas.
func (o *Outcomes) Report(ctx context.Context) (recovery.Learned, error) {
	out := recovery.Learned{Mode: o.rules.Load().mode, Cells: []recovery.LearnedCell{}, Patterns: []recovery.LearnedPattern{}}
	if out.Mode == OutcomesOff {
		return out, nil
	}
	err := o.exclusive(ctx, func() error {
		out.Observations, out.Refused, out.Open, out.Lost = len(o.known.list), o.known.refused, len(o.open), int(o.lost.Load())
		out.Cells, out.Patterns = o.counts.Load().report()
		return nil
	})
	return out, err
}

func (c *Counts) report() (cells []recovery.LearnedCell, patterns []recovery.LearnedPattern) {
	cells, patterns = []recovery.LearnedCell{}, []recovery.LearnedPattern{}
	whole := map[counterKey]bool{} // one entry for each key, chain and model
	for k, t := range c.counters {
		switch {
		case k.template != "" && t.n >= minOutcomes && k.strategy != noNote:
			patterns = append(patterns, c.pattern(k, t))
		case k.template == "" && k.task == "":
			whole[counterKey{key: k.key, chain: k.chain, model: k.model}] = true
		}
	}
	for k := range c.censored {
		whole[k] = true
	}
	for k := range whole {
		cells = append(cells, c.cell(k))
	}
	slices.SortFunc(cells, func(x, y recovery.LearnedCell) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Chain, y.Chain), cmp.Compare(x.Model, y.Model))
	})
	slices.SortFunc(patterns, func(x, y recovery.LearnedPattern) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Chain, y.Chain), cmp.Compare(x.Template, y.Template), cmp.Compare(x.Model, y.Model), cmp.Compare(y.Lower, x.Lower))
	})
	return cells, patterns
}

// cell returns what is known about the strategies of one key, chain and model, for all tasks.
func (c *Counts) cell(k counterKey) recovery.LearnedCell {
	out := recovery.LearnedCell{Key: k.key, Chain: k.chain, Model: k.model, Decision: "chain", Censored: c.censored[k]}
	arm := func(strategy string) recovery.LearnedArm {
		k.strategy = strategy
		t := c.counters[k]
		e := c.estimate(k.chain, strategy, t)
		return recovery.LearnedArm{Strategy: strategy, Observations: t.n, Rate: e.rate, CI: [2]float64{e.low, e.high}}
	}
	for s := range c.priors[k.chain] {
		a := arm(s)
		if a.Observations > 0 {
			out.Arms = append(out.Arms, a)
		}
		if a.Observations >= minOutcomes {
			out.Decision = "learned"
		}
	}
	slices.SortFunc(out.Arms, func(x, y recovery.LearnedArm) int {
		return cmp.Or(cmp.Compare(y.Rate, x.Rate), cmp.Compare(x.Strategy, y.Strategy))
	})
	without := arm(noNote)
	if out.Decision == "learned" && without.Observations >= minOutcomes && out.Arms[0].CI[1] < without.CI[0] {
		out.Decision = "observe"
	}
	if len(out.Arms) > 0 {
		out.Net = out.Arms[0].Rate - without.Rate
		out.CI = [2]float64{out.Arms[0].CI[0] - without.CI[1], out.Arms[0].CI[1] - without.CI[0]}
	}
	out.Arms = append(out.Arms, without)
	return out
}
