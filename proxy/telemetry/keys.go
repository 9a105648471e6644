package telemetry

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rebound-llm/rebound/recovery"
)

// keys are the metrics by gateway key. Where there are no keys, there are none.
type keys struct {
	requests, refused, tokens, spent *prometheus.CounterVec

	series atomic.Pointer[map[string]*keySeries] // by name; replaced, never changed
}

type keySeries struct {
	requests [outcomes]prometheus.Counter
	tokens   [kinds]prometheus.Counter
}

func newKeys(counter func(name, help string, labels ...string) *prometheus.CounterVec) *keys {
	k := &keys{
		requests: counter("key_requests_total", "Requests by gateway key. Outcomes are those of requests_total.", "key", "outcome"),
		refused:  counter("key_refused_total", "Requests that a limit refused, by gateway key and by the error's code.", "key", "limit"),
		tokens:   counter("key_tokens_total", "Tokens by gateway key, of all attempts, as upstreams reported them.", "key", "kind"),
		spent:    counter("key_spent_total", "Money spent by gateway key, in the currency of the configured prices.", "key"),
	}
	k.series.Store(&map[string]*keySeries{})
	return k
}

// name makes the series of keys, and removes those of keys that are gone.
func (k *keys) name(names []string) {
	next := make(map[string]*keySeries, len(names))
	for _, name := range names {
		s := &keySeries{}
		for i, outcome := range outcomeNames {
			s.requests[i] = k.requests.WithLabelValues(name, outcome)
		}
		for i, kind := range kindNames {
			s.tokens[i] = k.tokens.WithLabelValues(name, kind)
		}
		next[name] = s
	}
	for name := range *k.series.Swap(&next) {
		if next[name] == nil {
			for _, v := range [...]*prometheus.CounterVec{k.requests, k.refused, k.tokens, k.spent} {
				v.DeletePartialMatch(prometheus.Labels{"key": name})
			}
		}
	}
}

// count counts a request of a key.
func (k *keys) count(ev *recovery.Event, out outcome) {
	s := (*k.series.Load())[ev.Key]
	if s == nil {
		return
	}
	s.requests[out].Inc()
	used := ev.Usage.Add(ev.Cost)
	addTokens(&s.tokens, &used)
	k.pay(ev)
	if out == outcomeRejected && (strings.HasPrefix(ev.Rule, "key_") || strings.HasPrefix(ev.Rule, "total_") || strings.HasPrefix(ev.Rule, "no_")) {
		k.refused.WithLabelValues(ev.Key, ev.Rule).Inc() // the gateway's own codes: few
	}
}

// plan counts what a planner used for a key, beside its requests.
func (k *keys) plan(ev *recovery.Event) {
	if s := (*k.series.Load())[ev.Key]; s != nil {
		addTokens(&s.tokens, &ev.Cost)
		k.pay(ev)
	}
}

func (k *keys) pay(ev *recovery.Event) {
	if ev.Spent > 0 {
		k.spent.WithLabelValues(ev.Key).Add(min(ev.Spent, saneTokens))
	}
}
