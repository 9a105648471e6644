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
	// halfLife is after how long an outcome counts half, and halfCount after how many
	// newer ones of its counter.
	halfLife  = 7 * 24 * time.Hour
	halfCount = 200
	// least is how many outcomes a counter needs before anything follows from it.
	least = 12
	// priorStrength is how many outcomes the chain's own confidence is worth.
	priorStrength = 3
	// perSession is how many outcomes of one session count for a chain and model.
	perSession = 4
	// minKeys is how many different gateway keys the counters that all keys share need,
	// and perKey how many outcomes of one key count in each of them: no client decides
	// what another one is told.
	minKeys, perKey = 4, 8
	// probe is in how many sessions one is used to compare a note with none at all.
	probe = 10
	// hope is how much of the way from a rate to its interval's upper end counts in the
	// order of strategies: what was tried seldom is tried again.
	hope = 0.5
)

// none is the arm without a note.
const none = ""

// everybody is the owner of the counters that all keys share.
const everybody = "*"

// counterKey names a counter. An empty model is all models; an empty task and template
// are all tasks and templates.
type counterKey struct{ owner, chain, strategy, model, task, template string }

// counter is the weighted outcomes of one strategy, the newest weighing most.
type counter struct {
	wins, losses float64
	n            int
	keys         map[string]int // outcomes by gateway key, of shared counters only
}

// Counts is what a corpus says at one time. Immutable.
type Counts struct {
	priors   Priors
	counters map[counterKey]*counter
	censored map[counterKey]int // by owner, chain and model
}

// Fold counts observations, which are in the order in which they were made.
func Fold(priors Priors, list []Observation, now time.Time) *Counts {
	c := &Counts{priors: priors, counters: map[counterKey]*counter{}, censored: map[counterKey]int{}}
	said := map[counterKey]int{}
	for i := range slices.Backward(list) { // the newest first: of those that are too many the old ones go
		o := &list[i]
		session := counterKey{owner: o.Session, chain: o.Chain, model: o.Model}
		if said[session]++; said[session] > perSession {
			continue
		}
		v, counts := value(o.Outcome)
		if !counts {
			c.censored[counterKey{owner: o.Key, chain: o.Chain, model: o.Model}]++
			continue
		}
		weight := math.Exp2(-max(0, now.Sub(time.Unix(o.Time, 0)).Seconds()) / halfLife.Seconds())
		for _, k := range levels(counterKey{o.Key, o.Chain, o.Strategy, o.Model, o.Task, o.Template}) {
			c.add(k, o.Key, v, weight)
			k.owner = everybody
			c.add(k, o.Key, v, weight)
		}
	}
	return c
}

// levels lists the counters of an outcome from the finest to the coarsest: the message's
// pattern, the kind of task, the model, and all models.
func levels(k counterKey) (out []counterKey) {
	coarse := k
	if coarse.task, coarse.template = "", ""; k.template != "" {
		fine := coarse
		fine.template = k.template
		out = append(out, fine)
	}
	if k.task != "" {
		fine := coarse
		fine.task = k.task
		out = append(out, fine)
	}
	if out = append(out, coarse); k.model != "" {
		coarse.model = ""
		out = append(out, coarse)
	}
	return out
}

func (c *Counts) add(k counterKey, key string, v, weight float64) {
	t := c.counters[k]
	if t == nil {
		t = &counter{}
		c.counters[k] = t
	}
	if k.owner == everybody {
		if t.keys == nil {
			t.keys = map[string]int{}
		}
		if t.keys[key] == perKey {
			return
		}
		t.keys[key]++
	}
	weight *= math.Exp2(-float64(t.n) / halfCount) // the newest are counted first
	t.wins, t.losses, t.n = t.wins+v*weight, t.losses+(1-v)*weight, t.n+1
}

// known reports whether anything follows from a counter.
func (t *counter) known() bool {
	return t != nil && t.n >= least && (t.keys == nil || len(t.keys) >= minKeys)
}

// of returns the finest known counter of a strategy, of the question's own key first, and
// whose it is; without any it returns an empty one. One that says nothing of the question's
// own model, or of the message where no chain explains it, only counts where any does.
func (c *Counts) of(q recovery.Question, template, strategy string, any bool) (t counter, owner string) {
	for _, owner := range []string{q.Key, everybody} {
		for _, k := range levels(counterKey{owner, q.Chain, strategy, q.Model, string(q.Task), template}) {
			if !any && (k.model != q.Model || k.chain == recovery.Unexplained && k.template == "") {
				break
			}
			if t := c.counters[k]; t.known() {
				return *t, owner
			}
		}
	}
	return counter{}, ""
}

// estimate is a rate of success with its 95 % interval.
type estimate struct{ rate, low, high float64 }

// hopeful is by what strategies are ordered.
func (e estimate) hopeful() float64 { return e.rate + hope*(e.high-e.rate) }

// estimate returns what a counter and the chain's own confidence say, the latter
// worth priorStrength outcomes; the interval is Wilson's score interval.
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

// Choose orders a question's strategies by what they brought, and says whether to say
// nothing. It is a function of the counts and the question: a client's retry, and another
// replica that knows the same, get the same.
func (c *Counts) Choose(q recovery.Question, template string) recovery.Preference {
	out := recovery.Preference{Strategies: q.Strategies, Template: template}
	seen, est := 0, map[string]estimate{}
	for _, s := range q.Strategies {
		t, _ := c.of(q, template, s, true)
		seen, est[s] = seen+t.n, c.estimate(q.Chain, s, t)
	}
	if seen == 0 {
		return out
	}
	out.Strategies = slices.SortedStableFunc(slices.Values(q.Strategies), func(x, y string) int { return cmp.Compare(est[y].hopeful(), est[x].hopeful()) })
	silent, _ := c.of(q, template, none, true)
	out.Withhold = c.withholds(q, out.Strategies[0], est[out.Strategies[0]], silent)
	return out
}

// withholds reports whether nothing is said: where no note is known to do better than the
// best one. Until one of the two is known to be better, the one that seems worse still has
// one session in probe, but an agent that is stuck always gets its note.
func (c *Counts) withholds(q recovery.Question, strategy string, best estimate, silent counter) bool {
	without := c.estimate(q.Chain, strategy, silent) // nothing is supposed of either
	_, stuck := c.priors[q.Chain][recovery.Hint]
	switch probed := seed(q.Session, q.Chain)%probe == 0; {
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

// Known is the strategy with the best lower bound among a question's, if one has enough
// outcomes with this kind of trouble and model. A failure that no chain explains has to
// have a message with public words, of which the outcomes are: others may be any failure.
func (c *Counts) Known(q recovery.Question, template string) (best recovery.LearnedPattern, ok bool) {
	if template == wild || template == "" && q.Chain == recovery.Unexplained {
		return best, false
	}
	for _, s := range q.Strategies {
		t, owner := c.of(q, template, s, false)
		if p := c.pattern(counterKey{owner: owner, chain: q.Chain, strategy: s, model: q.Model, template: template}, t); t.n > 0 && (!ok || p.Lower > best.Lower) {
			best, ok = p, true
		}
	}
	return best, ok
}

func (c *Counts) pattern(k counterKey, t counter) recovery.LearnedPattern {
	e := c.estimate(k.chain, k.strategy, t)
	return recovery.LearnedPattern{Key: k.owner, Chain: k.chain, Template: k.template, Model: k.model, Strategy: k.strategy, Observations: t.n, Rate: e.rate, Lower: e.low}
}

// seed is a hash of names.
func seed(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		_, _ = h.Write([]byte(p))
	}
	return h.Sum64()
}
