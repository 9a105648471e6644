package telemetry

import (
	"maps"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Labels are the possible values of metrics' labels, all from configuration and fixed tables. All
// other values count as "other", so that clients cannot create an unlimited number of series; only the
// first models that answer get a label without configuration (see maxMet). It is only read during the
// call that takes it.
type Labels struct {
	// Models are the configured model names with their targets, in order of preference. Keys of
	// targets are ignored.
	Models map[string][]recovery.Target
	// Upstreams are the configured upstreams with the labels of their own keys.
	Upstreams map[string][]string
	// Keys are the names of the gateway keys.
	Keys []string
	// Specs is the table of classes.
	Specs []*recovery.Spec
	// Strategies are the names of all strategies.
	Strategies []string
}

// Label values for everything without a name of its own.
const (
	labelOther  = "other"  // an unknown name
	labelNone   = "none"   // not applicable
	labelClient = "client" // any credential of a client
	labelOK     = "ok"     // a successful attempt
	labelGone   = "canceled"
)

// parallel is the engine's own strategy: a second attempt in parallel with a silent one.
const parallel = "parallel"

// names are the possible label values. They are immutable.
type names struct {
	models, strategies, keys map[string]bool
	upstreams                map[string][]string // with the labels of their own keys
	targets                  map[recovery.Target]bool
	classes                  map[recovery.Class]bool
}

// setLabels creates the series for l and removes those of removed names.
func (m *metrics) setLabels(l Labels) {
	m.naming.Lock()
	defer m.naming.Unlock()
	n := &names{models: map[string]bool{}, strategies: map[string]bool{}, keys: map[string]bool{}, upstreams: maps.Clone(l.Upstreams),
		targets: map[recovery.Target]bool{}, classes: map[recovery.Class]bool{}}
	var failed, cooling []string
	for _, spec := range l.Specs {
		n.classes[spec.Class] = true
		failed = append(failed, string(spec.Class))
		if spec.Cools {
			cooling = append(cooling, string(spec.Class))
		}
	}
	failed = append(failed, labelOK, labelGone, labelOther)
	m.showModel(labelOther)
	for name, targets := range l.Models {
		n.models[name] = true
		m.showModel(name)
		for i, target := range targets {
			n.targets[target.Keyless()] = true
			if i > 0 {
				m.fallbacks.show(name, target.Upstream)
			}
		}
	}
	m.showUpstream(labelOther, failed)
	for name, keys := range l.Upstreams {
		n.targets[recovery.Target{Upstream: name, Model: labelOther}] = true
		m.showUpstream(name, failed)
		if len(keys) == 0 {
			keys = []string{labelClient}
		}
		for _, key := range keys {
			for _, class := range cooling {
				m.cooldowns.show(name, key, class)
			}
		}
	}
	for _, name := range append([]string{parallel, labelNone}, l.Strategies...) {
		n.strategies[name] = true
		m.recoveries.showAll([]string{name}, []string{"attempted", "success", "failed"})
	}
	for _, name := range l.Keys {
		n.keys[name] = true
		m.keyRequests.showAll([]string{name}, outcomes)
		m.keyTokens.showAll([]string{name}, kindNames[:])
	}
	if old := m.names.Swap(n); old != nil {
		forget(old.models, n.models, "model", m.requests, m.duration, m.ttfb, m.fallbacks)
		forget(old.upstreams, n.upstreams, "upstream", m.attempts, m.tokens, m.billed, m.cooldowns, m.fallbacks)
		forget(old.keys, n.keys, "key", m.keyRequests, m.keyRefused, m.keyTokens, m.keySpent)
	}
}

// forget removes the series of names that a reload removed.
func forget[V any](old, now map[string]V, label string, of ...*instrument) {
	for name := range old {
		if _, stays := now[name]; !stays && name != labelOther {
			for _, i := range of {
				i.forget(label, name)
			}
		}
	}
}

func (m *metrics) showModel(label string) {
	m.duration.show(label)
	m.ttfb.show(label)
	for format := range transcript.FormatCount {
		for _, u := range usual {
			m.requests.show(label, format.String(), u[0], u[1])
		}
	}
}

func (m *metrics) showUpstream(label string, classes []string) {
	m.attempts.showAll([]string{label}, classes)
	m.tokens.showAll(kindNames[:], []string{label})
	m.billed.show(label)
}

// maxMet limits the models that get a label without being configured, and maxModelName the length of
// their names, in bytes.
const (
	maxMet       = 20
	maxModelName = 100
)

// label returns the label of a model, from a bounded set.
func (m *metrics) label(model string) string {
	if m.names.Load().models[model] || (*m.met.Load())[model] {
		return model
	}
	return labelOther
}

// meet gives a model that answered its own label, up to maxMet. A client cannot invent such names,
// because an upstream has answered for them.
func (m *metrics) meet(name string) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(*m.met.Load()) >= maxMet || name == "" || name == labelOther || len(name) > maxModelName || strings.ContainsFunc(name, odd) {
		return
	}
	m.naming.Lock()
	defer m.naming.Unlock()
	met := maps.Clone(*m.met.Load())
	if !met[name] && len(met) < maxMet {
		met[name] = true
		m.showModel(name)
		m.met.Store(&met)
	}
}

func (n *names) upstream(name string) string {
	if _, ok := n.upstreams[name]; ok {
		return name
	}
	return labelOther
}

func (n *names) upstreamKey(t recovery.Target) string {
	switch {
	case t.Key == "":
		return labelNone
	case slices.Contains(n.upstreams[t.Upstream], t.Key):
		return t.Key
	}
	return labelClient
}

func (n *names) class(c recovery.Class) string {
	if n.classes[c] {
		return string(c)
	}
	return labelOther
}

// attempt returns the class label of an attempt; out is the outcome of its request.
func (n *names) attempt(c recovery.Class, out string) string {
	switch {
	case c != "":
		return n.class(c)
	case out == outcomeCanceled:
		return labelGone
	}
	return labelOK
}

func (n *names) strategy(name string) string {
	switch {
	case name == "":
		return labelNone
	case n.strategies[name]:
		return name
	}
	return labelOther
}
