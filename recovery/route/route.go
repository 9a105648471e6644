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

// Upstream holds the facts about an upstream that routing needs.
type Upstream struct {
	Name        string
	Keys        []Key // the gateway's credentials; if empty, requests use the client's credential or none
	Passthrough bool
	Prefill     recovery.Prefill
	Local       bool
	API         transcript.API
}

// Key is the label and weight of one credential.
type Key struct {
	Name   string
	Weight float64
}

// Table is the model map. It is immutable and safe for concurrent use. Its pins are an argument of New, since they outlive
// it.
type Table struct {
	upstreams map[string]Upstream
	models    map[string]Model
	unmapped  [transcript.APICount]Model // targets of models that are not mapped
	pins      *Pins
}

// New returns a table. Every upstream that a model names must exist; package configs checks that. defaults names the
// upstream of each API for models that are not mapped; with an empty name such requests have no target.
func New(upstreams []Upstream, models map[string]Model, defaults [transcript.APICount]string, pins *Pins) *Table {
	t := &Table{upstreams: map[string]Upstream{}, models: models, pins: pins}
	for i, name := range defaults {
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

// Chooses reports whether a model has more than one target of an API.
func (t *Table) Chooses(model string, api transcript.API) bool {
	n := 0
	for _, entry := range t.modelFor(model, api).Targets {
		if u := t.upstreams[entry.Upstream]; u.API == api {
			n += max(1, len(u.Keys))
		}
	}
	return n > 1
}

// modelFor returns the entry of a model; for a model that is not mapped, the default of the API.
func (t *Table) modelFor(model string, api transcript.API) Model {
	if m, ok := t.models[model]; ok {
		return m
	}
	return t.unmapped[api]
}

// Prepare sets the exchange's candidates.
func (t *Table) Prepare(_ context.Context, x *recovery.Exchange) error {
	api := transcript.OpenAI
	if x.Body != nil {
		api = x.Body.Format().API()
	}
	x.Candidates = t.candidates(x.Candidates[:0], x.Model, api, x.Credential, x.Affinity)
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

// Candidates returns the targets of an API for a model name, best first. credential is the label of the client's own credential; affinity is the same for all requests of a
// conversation.
func (t *Table) Candidates(model string, api transcript.API, credential string, affinity uint64) []recovery.Choice {
	return t.candidates(nil, model, api, credential, affinity)
}

// candidates is Candidates; it uses the memory of an empty list if that is large enough.
func (t *Table) candidates(list []recovery.Choice, model string, api transcript.API, credential string, affinity uint64) []recovery.Choice {
	m := t.modelFor(model, api)
	n := 0
	for _, entry := range m.Targets {
		n += max(1, len(t.upstreams[entry.Upstream].Keys))
	}
	list = slices.Grow(list, n)
	first := -1
	for i, entry := range m.Targets {
		if t.upstreams[entry.Upstream].API != api {
			continue
		}
		if first < 0 {
			first = i
		}
		list = t.expand(list, i-first, entry, m, model, credential)
	}
	if len(list) > 1 {
		return ordered(list, affinity)
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
	if c.Fallback = m.FallbackFor; c.Fallback == nil {
		c.Fallback = DefaultFallbackFor()
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

// ordered returns the list sorted by rank and, within a rank, by weighted rendezvous hashing (Schindelhauer and Schomaker,
// 2005): a conversation keeps its target while that exists, and the shares of targets follow their weights.
func ordered(list []recovery.Choice, affinity uint64) []recovery.Choice {
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
		for j := range i { // equal targets get the same score
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

// hashed returns the FNV-1a hash of the affinity and the target's name.
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

// Pins remember the target of a session after a failover, until the turn ends (a pin's name contains the turn) or five
// minutes have passed. Their number is limited. They are local to the process and safe for concurrent use.
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

// Keep pins a session and turn to t; name is the exchange's Pin.
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
		// A tenth is removed at once, since scanning all pins for each new one would be expensive.
		for k := range p.pins {
			if len(p.pins) <= maxPins*9/10 {
				break
			}
			delete(p.pins, k)
		}
	}
	if old, ok := p.pins[name]; ok && old.target == t && now.Before(old.until) {
		return // the pin ends five minutes after the failover, not after the last request
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
