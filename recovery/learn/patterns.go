package learn

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

func patternOf(q recovery.Question, template string) patternKey {
	return patternKey{cellKey{q.Chain, template}, trajectory.KindOf(q.Tool).String(), q.Model}
}

// told is what is believed of an arm for a pattern, from what is known of the same wording
// with other kinds of tools and other models, and of other arms that say much the same.
func (b *Beliefs) told(key patternKey, arm string, alike ...string) distuv.Beta {
	p, own, all := b.prior(key.chain, arm), b.patterns[key].of(arm), b.wordings[key.cellKey].of(arm)
	wins, losses := priorStrength*p+max(0, all.wins-own.wins), priorStrength*(1-p)+max(0, all.losses-own.losses)
	for _, a := range alike {
		t := b.wordings[key.cellKey].of(a)
		wins, losses = wins+t.wins, losses+t.losses
	}
	return leaning(wins, losses, own)
}

// sure is the strategy that is known to be best for a wording of a chain's failure, if
// there is one.
func (b *Beliefs) sure(key patternKey, strategies []string) (p recovery.LearnedPattern, ok bool) {
	c := b.wordings[key.cellKey]
	if c == nil || key.of == "" || len(strategies) < 2 {
		return p, false
	}
	order := slices.SortedStableFunc(slices.Values(strategies), func(x, y string) int { return cmp.Compare(b.told(key, y).Mean(), b.told(key, x).Mean()) })
	best := order[0]
	if c.of(best).weight() < patternLeast {
		return p, false
	}
	for _, other := range append([]string{none}, order[1:]...) {
		if exceeds(b.told(key, best), b.told(key, other)) < sureness {
			return p, false
		}
	}
	return b.pattern(key, best, c.of(best).n, b.told(key, best)), true
}

// instead is the strategy that a planner need not be asked about, if there is one: it is
// known to do better than no note, and not known to do worse than planners do. What
// planners brought with the same strategy counts, ten observations at most: with their
// own words and parameters it is another note.
func (b *Beliefs) instead(key patternKey, strategies []string) (p recovery.LearnedPattern, ok bool) {
	c := b.wordings[key.cellKey]
	if c == nil || len(strategies) == 0 || key.of == wild || key.of == "" && key.chain == recovery.Unexplained {
		return p, false // other failures may have no public word, too
	}
	believed := func(s string) distuv.Beta { return b.told(key, s, recovery.ByPlanner(recovery.PlanStrategy(s))) }
	best := slices.MaxFunc(strategies, func(x, y string) int { return cmp.Compare(believed(x).Mean(), believed(y).Mean()) })
	planned := c.of(recovery.ByPlanner(recovery.PlanStrategy(best)))
	if c.of(best).weight()+planned.weight() < patternLeast {
		return p, false
	}
	all, own := b.posterior(key.chain, key.model, none), b.patterns[key].of(none)
	without := leaning(all.Alpha-own.wins, all.Beta-own.losses, own)
	planner := distuv.Beta{Alpha: priorStrength * even, Beta: priorStrength * (1 - even)}
	for _, s := range recovery.PlanStrategies() {
		t := c.of(recovery.ByPlanner(s))
		planner.Alpha, planner.Beta = planner.Alpha+t.wins, planner.Beta+t.losses
	}
	if exceeds(believed(best), without) < sureness || exceeds(planner, believed(best)) >= sureness {
		return p, false
	}
	return b.pattern(key, best, c.of(best).n+planned.n, believed(best)), true
}

func (b *Beliefs) pattern(key patternKey, strategy string, n int, believed distuv.Beta) recovery.LearnedPattern {
	return recovery.LearnedPattern{Chain: key.chain, Template: key.of, Kind: key.kind, Model: key.model, Strategy: strategy, Observations: n, Rate: believed.Mean()}
}

// stuck reports whether a chain is one of what an agent is stuck in, without an order.
func (b *Beliefs) stuck(chain string) bool {
	_, ok := b.priors[chain][recovery.Hint]
	return ok
}

// Known is the strategy that stands in for a planner, if one is known that is sure
// enough: it is not the planner that has to be asked then.
func (o *Outcomes) Known(q recovery.Question) (recovery.LearnedPattern, bool) {
	if o.cfg.Load().mode != OutcomesAct || q.Session == "" {
		return recovery.LearnedPattern{}, false
	}
	return o.beliefs.Load().instead(patternOf(q, o.parts.Vocabulary().Template(q.Line)), q.Strategies)
}
