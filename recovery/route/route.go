package route

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Upstream is what routing needs to know of an upstream.
type Upstream struct {
	Name        string
	Keys        []Key // own credentials; none: the client's or none at all
	Passthrough bool
	Prefill     recovery.Prefill
	Local       bool
	Messages    bool // it speaks Anthropic's Messages API; others speak OpenAI's formats
}

// Key is the label and weight of one credential.
type Key struct {
	Name   string
	Weight float64
}

// Table is the model map. It is immutable and safe for concurrent use; pins
// outlive it, so they are handed in.
type Table struct {
	upstreams map[string]Upstream
	models    map[string]Model
	unmapped  [2]Model // what serves models that are not mapped, by whether that is asked in the Messages API
	pins      *Pins
}

// New builds a table. Every upstream that a model names must exist; configs checks that. openAI
// and messages are the upstreams of models that are not mapped, for requests in the formats that
// they speak; an empty one serves none.
func New(upstreams []Upstream, models map[string]Model, openAI, messages string, pins *Pins) *Table {
	t := &Table{upstreams: map[string]Upstream{}, models: models, pins: pins}
	for i, name := range [...]string{openAI, messages} {
		if name != "" {
			t.unmapped[i].Targets = []Target{{Upstream: name}}
		}
	}
	for _, u := range upstreams {
		t.upstreams[u.Name] = u
	}
	return t
}

var _ recovery.Stage = (*Table)(nil)

// Names returns the configured model names, sorted.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.models)) }

// Chooses reports whether a model has more than one target for requests in the Messages API, or
// for others.
func (t *Table) Chooses(model string, messages bool) bool {
	n := 0
	for _, entry := range t.serving(model, messages).Targets {
		if u := t.upstreams[entry.Upstream]; u.Messages == messages {
			n += max(1, len(u.Keys))
		}
	}
	return n > 1
}

// serving is what serves a model.
func (t *Table) serving(model string, messages bool) Model {
	if m, ok := t.models[model]; ok {
		return m
	}
	if messages {
		return t.unmapped[1]
	}
	return t.unmapped[0]
}

// Prepare sets the exchange's candidates.
func (t *Table) Prepare(_ context.Context, x *recovery.Exchange) error {
	messages := x.Body != nil && x.Body.Format() == transcript.Messages
	x.Candidates = t.candidates(x.Candidates[:0], x.Model, messages, x.Credential, x.Affinity)
	if x.Pin == "" || len(x.Candidates) < 2 {
		return nil
	}
	if pinned, ok := t.pins.get(x.Pin); ok {
		i := slices.IndexFunc(x.Candidates, func(c recovery.Choice) bool { return c.Target == pinned })
		if i > 0 {
			c := x.Candidates[i]
			copy(x.Candidates[1:i+1], x.Candidates[:i])
			x.Candidates[0] = c
		}
	}
	return nil
}

// Candidates returns the targets for a model name that speak the Messages API, or that do
// not, best first. credential labels the client's own; affinity is what requests of one
// conversation share.
func (t *Table) Candidates(model string, messages bool, credential string, affinity uint64) []recovery.Choice {
	return t.candidates(nil, model, messages, credential, affinity)
}

// candidates is Candidates in the memory of an empty list, where that is enough.
func (t *Table) candidates(list []recovery.Choice, model string, messages bool, credential string, affinity uint64) []recovery.Choice {
	m := t.serving(model, messages)
	n := 0
	for _, entry := range m.Targets {
		n += max(1, len(t.upstreams[entry.Upstream].Keys))
	}
	list = slices.Grow(list, n)
	first := -1
	for i, entry := range m.Targets {
		if t.upstreams[entry.Upstream].Messages != messages {
			continue
		}
		if first < 0 {
			first = i
		}
		list = t.expand(list, i-first, entry, m, model, credential)
	}
	if len(list) > 1 {
		return arranged(list, affinity)
	}
	return list
}

// expand appends the candidates of one entry: one for each key of its upstream.
func (t *Table) expand(list []recovery.Choice, i int, entry Target, m Model, model, credential string) []recovery.Choice {
	u := t.upstreams[entry.Upstream]
	prefill := recovery.Prefill(entry.Prefill)
	if prefill == "" || prefill == recovery.PrefillAuto {
		prefill = u.Prefill
	}
	c := recovery.Choice{Candidate: recovery.Candidate{
		Target: recovery.Target{Upstream: entry.Upstream, Model: cmp.Or(entry.Model, model)},
		Rank:   i, Window: entry.Window, Local: u.Local, Client: u.Passthrough,
		Prefill: prefill,
		Weight:  entry.Weight,
	}}
	if entry.Rank != nil {
		c.Rank = *entry.Rank
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	if i > 0 {
		c.Fallback = m.FallbackFor
		if c.Fallback == nil {
			c.Fallback = DefaultFallbackFor()
		}
	}
	if len(u.Keys) == 0 {
		if u.Passthrough {
			c.Key = credential
		}
		return append(list, c)
	}
	share := c.Weight / float64(len(u.Keys))
	for _, k := range u.Keys {
		c.Key = k.Name
		c.Weight = share
		if k.Weight > 0 {
			c.Weight *= k.Weight
		}
		list = append(list, c)
	}
	return list
}

// arranged sorts by rank and, within a rank, by weighted rendezvous hashing
// (Schindelhauer and Schomaker, 2005): a conversation keeps its target as long
// as that exists, and shares follow the weights.
func arranged(list []recovery.Choice, affinity uint64) []recovery.Choice {
	type place struct {
		at, rank int
		score    float64
		key      string
	}
	places := make([]place, len(list))
	for i := range list {
		c := &list[i]
		u := (float64(mix(hashed(affinity, c.Target))>>11) + 0.5) / (1 << 53)
		places[i] = place{i, c.Rank, -c.Weight / math.Log(u), c.Key}
		for j := range i { // a target that is listed again has one score
			if list[j].Target == c.Target {
				places[j].score = places[i].score
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.score, a.score), strings.Compare(a.key, b.key))
	})
	out := make([]recovery.Choice, len(list))
	for i, p := range places {
		out[i] = list[p.at]
	}
	return out
}

// hashed is FNV-1a over the affinity and the target's name.
func hashed(affinity uint64, t recovery.Target) uint64 {
	h := uint64(14695981039346656037)
	add := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for b := range 8 {
		add(byte(affinity >> (8 * b)))
	}
	text := func(s string) {
		for i := range len(s) {
			add(s[i])
		}
	}
	text(t.Upstream)
	text("/")
	text(t.Model)
	if t.Key != "" {
		text("#")
		text(t.Key)
	}
	return h
}

// mix spreads a hash over all bits (the finaliser of splitmix64).
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// Pins remember where failed-over sessions stay: until the turn ends (a pin's
// name contains the turn) or five minutes pass. They are bounded, local to the
// process and safe for concurrent use.
type Pins struct {
	mu   sync.Mutex
	pins map[string]pin
}

type pin struct {
	target recovery.Target
	until  time.Time
}

const (
	pinFor  = 5 * time.Minute
	maxPins = 10_000
)

var _ recovery.Keeper = (*Pins)(nil)

// Keep makes the session and turn that name stands for stay at t.
func (p *Pins) Keep(name string, t recovery.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.pins == nil {
		p.pins = map[string]pin{}
	}
	if len(p.pins) >= maxPins {
		for k, v := range p.pins {
			if now.After(v.until) {
				delete(p.pins, k)
			}
		}
		// Room for many at once: a look at all of them for each new one is too dear.
		for k := range p.pins {
			if len(p.pins) <= maxPins*9/10 {
				break
			}
			delete(p.pins, k)
		}
	}
	if old, ok := p.pins[name]; ok && old.target == t && now.Before(old.until) {
		return // it ends five minutes after the failover, not after the last request
	}
	p.pins[name] = pin{t, now.Add(pinFor)}
}

func (p *Pins) get(name string) (recovery.Target, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.pins[name]
	if !ok || time.Now().After(v.until) {
		return recovery.Target{}, false
	}
	return v.target, true
}
