package learn

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rebound-llm/rebound/recovery"
)

// How much is believed, and for how long. docs/learning.md has what they bring, and
// decision 0055 why they are these.
const (
	halfLife = 7 * 24 * time.Hour
	// halfCount is after how many newer observations of its cell an observation counts half.
	halfCount = 1000
	// priorStrength is how many observations the chain's confidence is worth, and
	// parentStrength how many what is known of other models, or of the model at other
	// tasks, is worth at most.
	priorStrength  = 3
	parentStrength = 10
	// even is the chance of any arm before anything is known, and lean how far a chain's
	// confidence moves it: it tells which strategy goes first better than how often it helps.
	even, lean = 0.5, 0.3
	// resolve is how much narrower samples are than what is believed: the plain posterior
	// goes on trying what is known to be worse for longer than an agent should pay for.
	resolve = 5
	// firstSteps is how many observations a chain needs before its order is left: what
	// is known of fewer says less than the chain does.
	firstSteps = 10
	// changed is the log-likelihood ratio from which an arm is taken to have changed, and
	// changeLeast how many observations must stand on either side.
	changed     = 8
	changeLeast = 10
	// perSession is how many observations of one session count in a cell.
	perSession = 4
	// doubt is the probability that a note does better than none below which a cell
	// only observes, and sureness that from which a pattern goes first.
	doubt, sureness = 0.05, 0.95
	// patternLeast is the evidence from which a template may be a pattern.
	patternLeast = 12
	// maxModels and maxPatterns bound what is kept: of each, those seen last.
	maxModels, maxPatterns = 256, 1024
)

// none is the arm without a note.
const none = ""

// tally is weighted evidence about one arm.
type tally struct {
	wins, losses float64
	n            int // observations, unweighted
}

func (t tally) weight() float64 { return t.wins + t.losses }

func (t *tally) add(v, weight float64) {
	t.wins, t.losses, t.n = t.wins+v*weight, t.losses+(1-v)*weight, t.n+1
}

// cell is the evidence about the arms of a chain: of one model, of one template, or all.
type cell struct {
	arms     map[string]*tally
	count    int // observations that count
	censored int
}

type cellKey struct{ chain, of string }

// taskKey is a model at one task.
type taskKey struct {
	cellKey
	task string
}

// patternKey is a template, of one kind of tool and one model.
type patternKey struct {
	cellKey
	kind, model string
}

// Beliefs are what a corpus says, at one time. Immutable.
type Beliefs struct {
	priors   Priors
	chains   map[string]*cell  // all models together
	models   map[cellKey]*cell // by model
	tasks    map[taskKey]*cell // by model and task
	wordings map[cellKey]*cell // by template: all kinds of tools and models together
	patterns map[patternKey]*cell
}

// Fold makes beliefs of observations, which are in the order in which they were made.
func Fold(priors Priors, list []Observation, now time.Time) *Beliefs {
	b := &Beliefs{priors: priors, chains: map[string]*cell{}, models: map[cellKey]*cell{}, tasks: map[taskKey]*cell{}, wordings: map[cellKey]*cell{}, patterns: map[patternKey]*cell{}}
	groups := map[cellKey][]*Observation{} // the newest first
	type talker struct {
		cellKey
		session string
	}
	said := map[talker]int{}
	for i := range slices.Backward(list) {
		o := &list[i]
		key := cellKey{o.Chain, o.Model}
		if said[talker{key, o.Session}]++; said[talker{key, o.Session}] > perSession {
			continue
		}
		if _, there := groups[key]; there || len(groups) < maxModels {
			groups[key] = append(groups[key], o)
		}
	}
	// In order, so that sums are the same to the last bit wherever they are made.
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(x, y cellKey) int {
		return cmp.Or(cmp.Compare(x.chain, y.chain), cmp.Compare(x.of, y.of))
	}) {
		group, own := groups[key], cellOf(b.models, key)
		whole := b.chains[key.chain]
		if whole == nil {
			whole = &cell{arms: map[string]*tally{}}
			b.chains[key.chain] = whole
		}
		for _, o := range group[:sinceChange(group)] {
			v, counts := value(o.Outcome)
			if !counts {
				own.censored++
				continue
			}
			age := max(0, now.Sub(time.Unix(o.Time, 0)).Seconds()) / halfLife.Seconds()
			weight := math.Exp2(-age - float64(own.count)/halfCount)
			own.add(o.Strategy, v, weight)
			whole.add(o.Strategy, v, weight)
			cellOf(b.tasks, taskKey{key, o.Task}).add(o.Strategy, v, weight)
			wording := cellKey{o.Chain, o.Template}
			if of := (patternKey{wording, o.Kind, o.Model}); b.patterns[of] != nil || len(b.patterns) < maxPatterns {
				cellOf(b.patterns, of).add(o.Strategy, v, weight)
				cellOf(b.wordings, wording).add(o.Strategy, v, weight)
			}
		}
	}
	return b
}

func cellOf[K comparable](in map[K]*cell, key K) *cell {
	c := in[key]
	if c == nil {
		c = &cell{arms: map[string]*tally{}}
		in[key] = c
	}
	return c
}

func (c *cell) add(arm string, v, weight float64) {
	t := c.arms[arm]
	if t == nil {
		t = &tally{}
		c.arms[arm] = t
	}
	t.add(v, weight)
	c.count++
}

func (c *cell) of(arm string) tally {
	if c == nil || c.arms[arm] == nil {
		return tally{}
	}
	return *c.arms[arm]
}

// sinceChange is how many of a cell's observations, the newest first, were made since
// the chance of one of its arms last changed: what was before says nothing any more,
// of the others neither, since whatever changed it (the model, the agent, its tools)
// is theirs as well.
func sinceChange(group []*Observation) int {
	for {
		end := len(group)
		values, places := map[string][]float64{}, map[string][]int{}
		for i, o := range group {
			if v, counts := value(o.Outcome); counts {
				values[o.Strategy], places[o.Strategy] = append(values[o.Strategy], v), append(places[o.Strategy], i)
			}
		}
		for arm, list := range values {
			if at := changePoint(list); at > 0 {
				end = min(end, places[arm][at])
			}
		}
		if end == len(group) {
			return end
		}
		group = group[:end]
	}
}

// changePoint is where a row of outcomes most likely has two parts with different
// means, 0 where one mean explains it about as well.
func changePoint(values []float64) (at int) {
	total := 0.0
	for _, v := range values {
		total += v
	}
	best, n, sum := float64(changed), float64(len(values)), 0.0
	for i, v := range values {
		if i >= changeLeast && len(values)-i >= changeLeast {
			k := float64(i)
			if ratio := likelihood(sum, k) + likelihood(total-sum, n-k) - likelihood(total, n); ratio > best {
				best, at = ratio, i
			}
		}
		sum += v
	}
	return at
}

// likelihood is the logarithm of that of n outcomes with this sum, at their own mean.
func likelihood(sum, n float64) float64 {
	p := min(max(sum/n, 1e-6), 1-1e-6)
	return sum*math.Log(p) + (n-sum)*math.Log(1-p)
}

// prior is what the chain says of an arm.
func (b *Beliefs) prior(chain, arm string) float64 {
	if confidence, ok := b.priors[chain][arm]; ok {
		return even + lean*(confidence-even)
	}
	return even
}

// posterior is what is believed of an arm: of this model at all tasks, from what is known
// of the others, from what the chain says.
func (b *Beliefs) posterior(chain, model, arm string) distuv.Beta {
	p, own, all := b.prior(chain, arm), b.models[cellKey{chain, model}].of(arm), b.chains[chain].of(arm)
	wins := priorStrength*p + max(0, all.wins-own.wins)
	losses := priorStrength*(1-p) + max(0, all.losses-own.losses)
	return leaning(wins, losses, own)
}

// belief is what is believed of an arm where the agent is at a task, from what is
// believed of the model at others.
func (b *Beliefs) belief(q recovery.Question, arm string) distuv.Beta {
	all, own := b.posterior(q.Chain, q.Model, arm), b.tasks[taskKey{cellKey{q.Chain, q.Model}, string(q.Task)}].of(arm)
	return leaning(all.Alpha-own.wins, all.Beta-own.losses, own)
}

// leaning is own evidence, and other's that is worth parentStrength at most.
func leaning(wins, losses float64, own tally) distuv.Beta {
	s := min(1, parentStrength/(wins+losses))
	return distuv.Beta{Alpha: wins*s + own.wins, Beta: losses*s + own.losses}
}

// exceeds is the probability that x is larger than y.
func exceeds(x, y distuv.Beta) float64 {
	if x.Alpha < 1 || x.Beta < 1 { // its density has no bound
		return quad.Fixed(func(u float64) float64 { return y.CDF(x.Quantile(u)) }, 0, 1, 64, nil, 0)
	}
	return min(1, max(0, quad.Fixed(func(v float64) float64 { return x.Prob(v) * y.CDF(v) }, 0, 1, 64, nil, 0)))
}

// useless reports whether even the best of a question's strategies is known to do worse
// than no note: p > d/(r+d) does not hold, see docs/learning.md.
func (b *Beliefs) useless(q recovery.Question) bool {
	best := slices.MaxFunc(q.Strategies, func(x, y string) int {
		return cmp.Compare(b.belief(q, x).Mean(), b.belief(q, y).Mean())
	})
	return exceeds(b.belief(q, best), b.belief(q, none)) < doubt
}

// Choose answers a question. It is a function of the beliefs and the question: a
// client's retry, and another replica that knows the same, get the same.
func (b *Beliefs) Choose(q recovery.Question, template string) recovery.Preference {
	out := recovery.Preference{Strategies: q.Strategies, Template: template}
	if c := b.chains[q.Chain]; c == nil || c.count < firstSteps || b.stuck(q.Chain) && c.of(none).n < firstSteps {
		return out // nobody leaves an agent that is stuck alone because of what is only supposed of none
	}
	if b.useless(q) {
		out.Withhold = true
		return out
	}
	src := rand.NewPCG(seed(q.Session, q.Chain), q.Fingerprint)
	draw := func(arm string) float64 {
		d := b.belief(q, arm)
		return distuv.Beta{Alpha: resolve * d.Alpha, Beta: resolve * d.Beta, Src: src}.Rand()
	}
	drawn := map[string]float64{}
	for _, s := range q.Strategies {
		drawn[s] = draw(s)
	}
	known, sure := b.sure(patternOf(q, template), q.Strategies)
	if sure {
		drawn[known.Strategy] = 2
	}
	out.Strategies = slices.SortedStableFunc(slices.Values(q.Strategies), func(x, y string) int { return cmp.Compare(drawn[y], drawn[x]) })
	// The strategy that stands first drew the highest of several samples, so it has
	// to do better than none in a second one, too.
	if first := out.Strategies[0]; !sure {
		out.Withhold = draw(none) > min(drawn[first], draw(first))
	}
	return out
}

// seed is a hash of what a sample is drawn for.
func seed(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		_, _ = h.Write([]byte(p))
	}
	return h.Sum64()
}
