package learn

import (
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// Pace measures how long targets take to their first token, by input size, and holds the budget of parallel
// starts. It is safe for concurrent use.
type Pace struct {
	facts *Facts

	mu       sync.Mutex
	cfg      FirstTokenConfig
	parallel recovery.ParallelConfig
	samples  *store.Cache[paceKey, *ring]
	window   [2]struct{ requests, started int } // the current period and the previous one
	period   int64
	pauses   *store.Cache[recovery.Target, *ring] // longest pauses within answers, by upstream and model
	answered *store.Cache[answerKey, *[]sent]
	silent   *store.Cache[recovery.Target, *silence] // by upstream and model; targets that answer have no entry
}

var _ recovery.Pace = (*Pace)(nil)

type paceKey struct {
	target   recovery.Target
	size     int8 // bits of the estimated input; 0 for answers that are not streamed
	streamed bool
}

// ring holds the newest first-token times of one key.
type ring struct {
	d    [64]time.Duration
	n    int
	next int
	at   time.Time // of the newest
}

const (
	maxPaces = 4096
	// minSamples is the number of samples that a p95 needs.
	minSamples = 20
	// sharePeriod is the period over which the share of parallel starts is measured.
	sharePeriod = 10 * time.Minute
)

// NewPace returns a pace without samples.
func NewPace(cfg FirstTokenConfig, parallel recovery.ParallelConfig, facts *Facts) *Pace {
	return &Pace{facts: facts, cfg: cfg, parallel: parallel, samples: store.NewCache[paceKey, *ring](maxPaces), pauses: store.NewCache[recovery.Target, *ring](maxPaces),
		answered: store.NewCache[answerKey, *[]sent](maxPaces), silent: store.NewCache[recovery.Target, *silence](maxPaces)}
}

// Reconfigure applies new limits and keeps the samples.
func (p *Pace) Reconfigure(cfg FirstTokenConfig, parallel recovery.ParallelConfig) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg, p.parallel = cfg, parallel
}

func key(x *recovery.Exchange, c recovery.Candidate) paceKey {
	t := c.Target.Keyless()
	if !x.Streaming {
		return paceKey{target: t} // the duration of a whole answer depends on its output
	}
	return paceKey{t, int8(bits.Len(uint(x.Body.EstimateTokens()))), true}
}

// Limits implements recovery.Pace. The limit is three times the target's p95 for that input size, at least a
// bound that grows with the input. An answer that is not streamed shows nothing until it is complete: the bound
// is then Whole, and the p95 is that of whole answers. There is no limit for slow service tiers, nor for local
// servers without an alternative. If all targets are local, they are treated as others; a local server before a
// public one gets at least SameAfter.
func (p *Pace) Limits(x *recovery.Exchange, c recovery.Candidate, alternative bool) recovery.Limits {
	if tier := x.Body.ServiceTier(); tier == "flex" || tier == "batch" || c.Local && !alternative {
		return recovery.Limits{}
	}
	reasons := p.reasoning(x, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	cfg, more := &p.cfg, time.Duration(x.Body.EstimateTokens()/p.cfg.PerTokens)*time.Second
	least := cfg.Min
	if !x.Streaming {
		least = cfg.Whole
	}
	usual := least + more
	if r, ok := p.samples.Get(key(x, c)); ok {
		usual = max(usual, p.limitOf(r))
	}
	// One second more, so that an attempt that reasons for exactly this time is not doubled.
	thinks := max(usual, cfg.Reasoning+time.Second+more)
	silent := usual
	switch {
	case x.Streaming && x.Body.Format().Announces():
		// The server announces the answer before the model reasons, and nothing takes that long before the announcement.
		silent = min(silent, max(least+more, cfg.Whole))
	case reasons:
		silent = thinks
	}
	l := recovery.Limits{Lost: 2 * silent}
	switch {
	case !alternative:
		silent = max(silent, cfg.SameAfter+more)
	case c.Local && !allLocal(x):
		silent = max(silent, cfg.SameAfter)
	}
	l.Lost = max(l.Lost, silent)
	l.Silent, l.Thinks = silent, max(silent, thinks)
	l.Alive = min(aliveFactor*silent, max(silent, 2*thinks))
	return l
}

// aliveFactor is how many silent limits an attempt gets that shows signs of life.
const aliveFactor = 4

// limitOf returns the limit from a target's samples: from enough samples on Factor times their p95, before that twice
// the median. p.mu must be held.
func (p *Pace) limitOf(r *ring) time.Duration {
	if r.n >= minSamples {
		return time.Duration(p.cfg.Factor * float64(r.percentile(95)))
	}
	return 2 * r.percentile(50)
}

// allLocal reports whether only local targets serve the model.
func allLocal(x *recovery.Exchange) bool {
	return !slices.ContainsFunc(x.Candidates, func(c recovery.Choice) bool { return !c.Local })
}

// reasoning reports whether the model reasons for this request.
func (p *Pace) reasoning(x *recovery.Exchange, c recovery.Candidate) bool {
	return x.Body.Reasoning() || p.Reasons(c.Target)
}

// Reasons reports whether a target's model reasons before it answers, by its name or by earlier answers.
func (p *Pace) Reasons(t recovery.Target) bool {
	p.mu.Lock()
	patterns := p.cfg.ReasoningModels
	p.mu.Unlock()
	return matches(patterns, t.Model) || p.facts.Reasons(t)
}

func matches(patterns []string, model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, p := range patterns {
		if ok, _ := path.Match(strings.ToLower(p), name); ok {
			return true
		}
	}
	return false
}

// Observe records the time to the first token of an answer.
func (p *Pace) Observe(x *recovery.Exchange, c recovery.Candidate, firstToken time.Duration, u recovery.Usage) {
	if u.Reasoning > 0 {
		p.facts.SawReasoning(c.Target, x.ID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(time.Now(), 1, 0)
	if firstToken <= 0 {
		return
	}
	entry(p.samples, key(x, c)).add(firstToken)
}

// entry returns the value of a key, or adds one.
func entry[K comparable, V any](c *store.Cache[K, *V], k K) *V {
	v, ok := c.Get(k)
	if !ok {
		v = new(V)
		c.Put(k, v, 1)
	}
	return v
}

func (r *ring) add(d time.Duration) {
	r.d[r.next], r.at = d, time.Now()
	r.next = (r.next + 1) % len(r.d)
	r.n = min(r.n+1, len(r.d))
}

// ObservePause implements recovery.Pace.
func (p *Pace) ObservePause(t recovery.Target, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry(p.pauses, t.Keyless()).add(pause)
}

// leastIdle is the shortest pause of an answer that counts as idle.
const leastIdle = 8 * time.Second

// Idle implements recovery.Pace: Factor times the longest pause of remembered answers.
func (p *Pace) Idle(t recovery.Target) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.pauses.Get(t.Keyless())
	if !ok || r.n < minSamples {
		return 0
	}
	return max(leastIdle, time.Duration(p.cfg.Factor*float64(slices.Max(r.d[:r.n]))))
}

// percentile returns the time within which the given percentage of the answers came.
func (r *ring) percentile(percent int) time.Duration {
	sorted := r.d
	slices.Sort(sorted[:r.n])
	return sorted[r.n*percent/100]
}

// Allow implements recovery.Pace: no parallel start for large inputs, and no more than a share of all requests.
func (p *Pace) Allow(x *recovery.Exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(time.Now(), 0, 0)
	requests := p.window[0].requests + p.window[1].requests
	started := p.window[0].started + p.window[1].started
	allowed := max(p.parallel.Burst, int(p.parallel.MaxShare*float64(requests)))
	if x.Body.EstimateTokens() > p.parallel.MaxTokens || started >= allowed {
		return false
	}
	p.count(time.Now(), 0, 1)
	return true
}

// Return implements recovery.Pace.
func (p *Pace) Return() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.window {
		if w := &p.window[i]; w.started > 0 {
			w.started--
			return
		}
	}
}

func (p *Pace) count(now time.Time, requests, started int) {
	switch n := now.UnixNano() / int64(sharePeriod); n - p.period {
	case 0, -1: // a request from just before the period may come late
	case 1:
		p.window[1], p.window[0] = p.window[0], struct{ requests, started int }{}
		p.period = n
	default:
		p.window = [2]struct{ requests, started int }{}
		p.period = n
	}
	p.window[0].requests += requests
	p.window[0].started += started
}

// itemPace is the item of a target's pace, for all input sizes.
const itemPace = "first token"

// Marks lists the targets with enough samples, one mark for each input size, separately for streams and whole
// answers.
func (p *Pace) Marks() (marks []recovery.Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples.Each(func(k paceKey, r *ring) bool {
		if r.n < minSamples {
			return true
		}
		form := "whole answers"
		if k.streamed {
			form = fmt.Sprintf("streams below %d tokens", 1<<k.size)
		}
		marks = append(marks, recovery.Mark{Target: k.target.String(), Kind: recovery.MarkPace, Item: itemPace,
			Detail:   fmt.Sprintf("95 %% within %v, %s; may be silent for %v at least", round(r.percentile(95)), form, round(max(p.limitOf(r), p.cfg.Min))),
			Evidence: fmt.Sprintf("%d answers", r.n), Since: r.at})
		return true
	})
	return marks
}

// round rounds a time to three digits.
func round(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// Clear removes the samples of a target, by the target and item of a Mark, if item is itemPace or empty.
func (p *Pace) Clear(name, item string) {
	if item != "" && item != itemPace {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples.DeleteFunc(func(k paceKey, _ *ring) bool { return k.target.String() == name })
	p.pauses.DeleteFunc(func(t recovery.Target, _ *ring) bool { return t.String() == name })
}
