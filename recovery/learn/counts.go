package learn

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

const (
	// halfLife is the age at which an outcome has half its weight, halfCount the number of newer outcomes of its counter
	// with the same effect.
	halfLife  = 7 * 24 * time.Hour
	halfCount = 200
	// minOutcomes is the number of outcomes that a counter needs before it is used.
	minOutcomes = 12
	// priorStrength is the weight of the chain's own confidence, in outcomes.
	priorStrength = 3
	// perSession limits the outcomes of one session that count for a chain and model.
	perSession = 4
	// One of probeEvery sessions is used to compare a note with no note.
	probeEvery = 10
	// optimism is the part of the distance from a rate to its interval's upper end that counts in the order of strategies, so
	// that rarely tried strategies are tried again.
	optimism = 0.5
)

// noNote is the strategy of giving no note.
const noNote = ""

// counterKey identifies a counter. Each gateway key has its own, so that no client decides about another client's
// notes. An empty task or template means all tasks or templates.
type counterKey struct{ key, chain, strategy, model, task, template string }

// counter sums the weighted outcomes of one strategy; the newest have the highest weight.
type counter struct {
	wins, losses float64
	n            int
}

// Counts are the counters of a corpus at one time. They are immutable.
type Counts struct {
	priors   Priors
	counters map[counterKey]counter
	censored map[counterKey]int // by key, chain and model
}

// Fold counts observations, which must be in the order in which they were made.
func Fold(priors Priors, list []Observation, now time.Time) *Counts {
	c := &Counts{priors: priors, counters: map[counterKey]counter{}, censored: map[counterKey]int{}}
	said := map[counterKey]int{}
	for i := range slices.Backward(list) { // newest first, so that limits drop the oldest
		o := &list[i]
		session := counterKey{key: o.Session, chain: o.Chain, model: o.Model}
		if said[session]++; said[session] > perSession {
			continue
		}
		v, counts := value(o.Outcome)
		if !counts {
			c.censored[counterKey{key: o.Key, chain: o.Chain, model: o.Model}]++
			continue
		}
		weight := math.Exp2(-max(0, now.Sub(time.Unix(o.Time, 0)).Seconds()) / halfLife.Seconds())
		for _, k := range levels(counterKey{o.Key, o.Chain, o.Strategy, o.Model, o.Task, o.Template}) {
			t := c.counters[k]
			w := weight * math.Exp2(-float64(t.n)/halfCount) // the newest are counted first
			c.counters[k] = counter{t.wins + v*w, t.losses + (1-v)*w, t.n + 1}
		}
	}
	return c
}

// levels lists the counters of an outcome from the most specific to the most general: the message's template,
// the kind of task, and all outcomes of the strategy with this model.
func levels(k counterKey) (out []counterKey) {
	if k.template != "" {
		out = append(out, counterKey{k.key, k.chain, k.strategy, k.model, "", k.template})
	}
	if k.task != "" {
		out = append(out, counterKey{k.key, k.chain, k.strategy, k.model, k.task, ""})
	}
	return append(out, counterKey{k.key, k.chain, k.strategy, k.model, "", ""})
}

// finest returns the most specific counter of a strategy with enough outcomes, or an empty one.
func (c *Counts) finest(q recovery.Question, template, strategy string) counter {
	for _, k := range levels(counterKey{q.Key, q.Chain, strategy, q.Model, string(q.Task), template}) {
		if t := c.counters[k]; t.n >= minOutcomes {
			return t
		}
	}
	return counter{}
}

// estimate is a success rate with its 95 % interval.
type estimate struct{ rate, low, high float64 }

// orderValue returns the value by which strategies are ordered.
func (e estimate) orderValue() float64 { return e.rate + optimism*(e.high-e.rate) }

// estimate combines a counter with the chain's own confidence, which weighs priorStrength outcomes; the interval
// is Wilson's score interval.
func (c *Counts) estimate(chain, strategy string, t counter) estimate {
	p, ok := c.priors[chain][strategy]
	if !ok {
		p = 0.5
	}
	n := t.wins + t.losses + priorStrength
	rate := (t.wins + priorStrength*p) / n
	const z = 1.96
	middle, half := rate+z*z/(2*n), z*math.Sqrt(rate*(1-rate)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return estimate{rate, max(0, (middle-half)/scale), min(1, (middle+half)/scale)}
}

// Choose orders a question's strategies by their success, and decides whether to withhold the note. It is a
// function of the counts and the question, so a client's retry and another replica with the same counts get the
// same result.
func (c *Counts) Choose(q recovery.Question, template string) recovery.Preference {
	out := recovery.Preference{Strategies: q.Strategies, Template: template}
	seen, est := 0, map[string]estimate{}
	for _, s := range q.Strategies {
		t := c.finest(q, template, s)
		seen, est[s] = seen+t.n, c.estimate(q.Chain, s, t)
	}
	if seen == 0 {
		return out
	}
	out.Strategies = slices.SortedStableFunc(slices.Values(q.Strategies), func(x, y string) int { return cmp.Compare(est[y].orderValue(), est[x].orderValue()) })
	out.Withhold = c.withholds(q, out.Strategies[0], est[out.Strategies[0]], c.finest(q, template, noNote))
	return out
}

// withholds reports whether to give no note: if giving none is known to do better than the best strategy. Until
// it is known which of the two is better, one session in probe gets the one that seems worse, but a stuck agent
// gets its note.
func (c *Counts) withholds(q recovery.Question, strategy string, best estimate, silent counter) bool {
	without := c.estimate(q.Chain, strategy, silent) // neither has a prior
	_, stuck := c.priors[q.Chain][recovery.Hint]
	switch probed := seed(q.Session, q.Chain)%probeEvery == 0; {
	case silent.n > 0 && without.low > best.high:
		return true
	case stuck || best.low > without.high:
		return false
	case silent.n > 0 && without.rate > best.rate:
		return !probed
	default:
		return probed
	}
}

// Known returns the strategy with the best lower bound among a question's, if one has enough outcomes for this
// kind of trouble and model. For a failure that no chain explains, only outcomes of the same template count,
// because other outcomes may be of any failure.
func (c *Counts) Known(q recovery.Question, template string) (best recovery.LearnedPattern, ok bool) {
	if template == wildcard || template == "" && q.Chain == recovery.Unexplained {
		return best, false
	}
	for _, s := range q.Strategies {
		k := counterKey{q.Key, q.Chain, s, q.Model, "", template}
		t := c.counters[k]
		if q.Chain != recovery.Unexplained {
			t = c.finest(q, template, s)
		}
		if p := c.pattern(k, t); t.n >= minOutcomes && (!ok || p.Lower > best.Lower) {
			best, ok = p, true
		}
	}
	return best, ok
}

func (c *Counts) pattern(k counterKey, t counter) recovery.LearnedPattern {
	e := c.estimate(k.chain, k.strategy, t)
	return recovery.LearnedPattern{Key: k.key, Chain: k.chain, Template: k.template, Model: k.model, Strategy: k.strategy, Observations: t.n, Rate: e.rate, Lower: e.low}
}

// seed returns a hash of names.
func seed(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		_, _ = h.Write([]byte(p))
	}
	return h.Sum64()
}
