package learn

import (
	"fmt"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Pace knows how long targets take to their first token, by input size, and
// keeps the budget of parallel starts. Safe for concurrent use.
type Pace struct {
	facts *Facts

	mu       sync.Mutex
	cfg      FirstTokenConfig
	parallel recovery.ParallelConfig
	samples  map[paceKey]*ring
	window   [2]struct{ requests, started int } // this period and the one before
	period   int64
	reasons  map[string]bool // by model: whether its name is among cfg.ReasoningModels
}

var _ recovery.Pace = (*Pace)(nil)

type paceKey struct {
	target   recovery.Target
	size     int8 // bits of the estimated input; 0 of answers that are not streamed
	streamed bool
}

// ring holds the newest first-token times of one key.
type ring struct {
	d    [64]time.Duration
	n    int
	next int
	p95  time.Duration
	at   time.Time // of the newest
}

const (
	maxPaces = 4096
	// enough samples before a p95 says anything.
	enough = 20
	// sharePeriod is the period over which the share of parallel starts is kept.
	sharePeriod = 10 * time.Minute
)

// NewPace returns a pace that has seen nothing.
func NewPace(cfg FirstTokenConfig, parallel recovery.ParallelConfig, facts *Facts) *Pace {
	return &Pace{facts: facts, cfg: cfg, parallel: parallel, samples: map[paceKey]*ring{}}
}

// Reconfigure applies new limits; samples stay.
func (p *Pace) Reconfigure(cfg FirstTokenConfig, parallel recovery.ParallelConfig) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg, p.parallel, p.reasons = cfg, parallel, nil
}

func key(x *recovery.Exchange, c recovery.Candidate) paceKey {
	t := c.Target
	t.Key = ""
	if !x.Streaming {
		return paceKey{target: t} // how long a whole answer takes, its output says
	}
	return paceKey{t, int8(bits.Len(uint(x.Body.EstimateTokens()))), true}
}

// Limit is the silence after which an alternative may start: three times the
// target's p95 for that input size, at least a bound that grows with the
// input. An answer that is not streamed shows nothing until it is whole: the bound is
// then Whole, and the p95 that of whole answers. 0 is never: slow service tiers take
// their time, and so do local servers with nothing beside them, and at least SameAfter
// where something is. instead is three times the limit, for local ones that of any other server.
func (p *Pace) Limit(x *recovery.Exchange, c recovery.Candidate, now time.Time, alternative bool) (beside, instead time.Duration) {
	if c.Local && !alternative || slowTier(x.Body.ServiceTier()) {
		return 0, 0
	}
	p.mu.Lock()
	cfg := p.cfg
	tokens := x.Body.EstimateTokens()
	limit := cfg.Min
	if !x.Streaming {
		limit = max(limit, cfg.Whole)
	}
	if !alternative {
		limit = max(limit, cfg.SameAfter)
	}
	limit += time.Duration(tokens/cfg.PerTokens) * time.Second
	if r, ok := p.samples[key(x, c)]; ok && r.n >= enough {
		limit = max(limit, time.Duration(cfg.Factor*float64(r.p95)))
	}
	reasons := p.named(c.Model)
	p.mu.Unlock()
	if reasons || x.Body.Reasoning() || p.facts.Reasons(c.Target) {
		// A second more: what thinks for exactly that long is not doubled.
		limit = max(limit, cfg.Reasoning+time.Duration(1+tokens/cfg.PerTokens)*time.Second)
	}
	if beside = limit; c.Local {
		beside = max(limit, cfg.SameAfter)
	}
	return beside, max(beside, patience*limit)
}

// patience is how many limits a silent attempt gets where none may be made beside it.
const patience = 3

// named reports whether a model's name is one of models that reason.
func (p *Pace) named(model string) bool {
	reasons, ok := p.reasons[model]
	if !ok {
		if reasons = matches(p.cfg.ReasoningModels, model); len(model) > 256 {
			return reasons // a name that somebody made up is not kept
		}
		if p.reasons == nil || len(p.reasons) >= maxPaces {
			p.reasons = map[string]bool{}
		}
		p.reasons[model] = reasons
	}
	return reasons
}

func slowTier(tier string) bool { return tier == "flex" || tier == "batch" }

func matches(patterns []string, model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, p := range patterns {
		if ok, _ := path.Match(strings.ToLower(p), name); ok {
			return true
		}
	}
	return false
}

// Observe books the time to the first token of an answer.
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
	k := key(x, c)
	r, ok := p.samples[k]
	if !ok {
		if len(p.samples) >= maxPaces {
			for old := range p.samples {
				delete(p.samples, old)
				break
			}
		}
		r = &ring{}
		p.samples[k] = r
	}
	r.d[r.next], r.at = firstToken, time.Now()
	r.next = (r.next + 1) % len(r.d)
	r.n = min(r.n+1, len(r.d))
	if r.next%8 == 0 {
		r.p95 = r.percentile(95)
	}
}

// percentile is the time that so many percent of the answers were faster than.
// Where that is most of them, only the few slowest have to be put in order.
func (r *ring) percentile(percent int) time.Duration {
	few := r.n - r.n*percent/100
	var memory [len(r.d)]time.Duration
	slowest := memory[:0] // descending
	for _, d := range r.d[:r.n] {
		if len(slowest) == few {
			if d <= slowest[few-1] {
				continue
			}
			slowest = slowest[:few-1]
		}
		i := len(slowest)
		for i > 0 && slowest[i-1] < d {
			i--
		}
		slowest = slices.Insert(slowest, i, d)
	}
	return slowest[few-1]
}

// Allow takes one parallel start out of the budget: none for large inputs,
// and no more than a share of all requests.
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

func (p *Pace) count(now time.Time, requests, started int) {
	switch n := now.UnixNano() / int64(sharePeriod); n - p.period {
	case 0, -1: // who asked just before it began may come later
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

// itemPace names what is known of a target's pace, whatever the inputs' size.
const itemPace = "first token"

// Marks lists the targets whose pace is known well enough to count, one mark for each
// size of inputs, and for streams and whole answers.
func (p *Pace) Marks() (marks []recovery.Mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, r := range p.samples {
		if r.n < enough {
			continue
		}
		form := "whole answers"
		if k.streamed {
			form = "streams"
		}
		silence := time.Duration(p.cfg.Factor * float64(r.p95))
		marks = append(marks, recovery.Mark{Target: k.target.String(), Kind: recovery.MarkPace, Item: itemPace,
			Detail:   fmt.Sprintf("95 %% within %v, %s below %d tokens; may be silent for %v at least", round(r.p95), form, 1<<k.size, round(max(silence, p.cfg.Min))),
			Evidence: fmt.Sprintf("%d answers", r.n), Since: r.at})
	}
	return marks
}

// round is a time with three digits.
func round(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// Clear forgets the pace of a target, as a Mark names both, if item is that or empty.
func (p *Pace) Clear(name, item string) {
	if item != "" && item != itemPace {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.samples, func(k paceKey, _ *ring) bool { return k.target.String() == name })
}
