package telemetry

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/rebound-llm/rebound/recovery"
)

// Buckets in seconds. A completion takes from a fraction of a second to many minutes, so the bounds
// grow exponentially; they include the default first-token limits and deadlines (30 s, 60 s, 600 s).
var (
	durationBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200}
	ttfbBuckets     = []float64{.05, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600}
)

// metrics are all metrics of the gateway. A test fixes names, labels and help.
type metrics struct {
	// About requests and attempts.
	requests, duration, ttfb, attempts, recoveries, cooldowns, fallbacks, tokens, billed, extra, recovery, dropped *instrument
	// By gateway key; without keys there are no series.
	keyRequests, keyRefused, keyTokens, keySpent *instrument
	// About histories and the agents' own failures; all labels come from fixed sets.
	compressions, compressed, truncated, repairs, failures, loops, guidance, outcomes, judged, sessions, plans, approvals *instrument
	// Of OpenTelemetry's conventions, only for a collector.
	genDuration, genFirst, genTokens *instrument

	inFlight  atomic.Int64
	open      atomic.Pointer[func() []recovery.Target]
	condition atomic.Pointer[func() Condition]
	spend     atomic.Pointer[func(model, key string, tokens int, money float64)]

	naming sync.Mutex // serialises changes of names and met
	names  atomic.Pointer[names]
	met    atomic.Pointer[map[string]bool] // models that are not configured; replaced, never changed
}

func newMetrics(r prometheus.Registerer, version string) *metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *instrument {
		i := newInstrument("rebound_"+name, help, "", buckets, labels...)
		r.MustRegister(i)
		return i
	}
	counter := func(name, help string, labels ...string) *instrument { return histogram(name, help, nil, labels...) }
	m := &metrics{
		requests: counter("requests_total",
			"Requests, by what the client got. Outcome: ok, fallback (answered at once by a target of a later rank: the first is not asked now), "+
				"recovered (answered after something was done), failed, rejected (no attempt was made), canceled "+
				"(the client left). Format: chat, responses, messages, or other for what is forwarded.",
			"model", "format", "status_class", "outcome"),
		duration: histogram("request_duration_seconds",
			"Time from a request's arrival to the end of its answer. Rejected requests are left out.", durationBuckets, "model"),
		ttfb: histogram("ttfb_seconds",
			"Time from a request's arrival to the first byte of its answer, for streamed answers.", ttfbBuckets, "model"),
		attempts: counter("attempts_total",
			"Upstream attempts, by the class of their failure; ok for those that answered, canceled for those that the client left.",
			"upstream", "class"),
		recoveries: counter("recoveries_total",
			"Recovery by strategy. Result: attempted, success and failed (the last strategy of a request), observed (would have been attempted).",
			"strategy", "result"),
		cooldowns: counter("target_cooldowns_total", "Cool-downs begun, by upstream and label of the key.", "upstream", "key", "class"),
		fallbacks: counter("fallback_total", "Requests answered by a target of a later rank, by the upstream that answered.", "model", "upstream"),
		tokens:    counter("tokens_total", "Tokens of delivered answers, as upstreams reported them.", "kind", "upstream"),
		billed: counter("billed_equivalent_tokens_total",
			"Input tokens of all attempts in units of uncached input: input + 1.25 x cache write + 0.1 x cache read.", "upstream"),
		extra:    counter("extra_tokens_total", "Tokens spent beyond the delivered answers, as upstreams reported them.", "kind"),
		recovery: counter("recovery_spent_total", "Money spent on recovery, beyond the answers, in the currency of the configured prices.", "model", "key"),
		dropped: counter("events_dropped_total",
			"Events lost: queue (too many waited), subscriber (a reader of the live stream was too slow), log (writing failed), sink (the store's log failed), "+
				"otlp (spans that the collector did not take), recording (requests that were not recorded).", "where"),

		keyRequests: counter("key_requests_total", "Requests by gateway key. Outcomes are those of requests_total.", "key", "outcome"),
		keyRefused:  counter("key_refused_total", "Requests that a limit refused, by gateway key and by the error's code.", "key", "limit"),
		keyTokens:   counter("key_tokens_total", "Tokens by gateway key, of all attempts, as upstreams reported them.", "key", "kind"),
		keySpent:    counter("key_spent_total", "Money spent by gateway key, in the currency of the configured prices.", "key"),

		compressions: counter("compressions_total",
			"Histories made smaller. Reason: known (before the first attempt), overflow (after a refusal), observed (would have been).", "reason"),
		compressed: counter("compressed_tokens_total", "Tokens of compressed requests, before and after.", "when"),
		truncated:  counter("context_truncated_total", "Answers whose reported prompt was far below what was sent."),
		repairs:    counter("answer_repairs_total", "Repairs of models' answers, by step.", "rule"),
		failures:   counter("tool_failures_total", "Failures of the agents' tools, by category; none stands for other failures.", "category"),
		loops:      counter("loops_total", "Repetitions of agents, by kind.", "kind"),
		guidance: counter("guidance_total", "Notes to models. Result: injected, observed (would have been), "+
			"held_out (withheld to measure their effect), withheld (learned to be no help).", "about", "result"),
		outcomes: counter("guidance_outcomes_total",
			"What followed a tool's failure in the next turn, by arm (guided, held_out) and result (recovered, other, repeated).", "arm", "result"),
		judged: counter("guidance_judged_total",
			"What notes brought within two calls, by arm (note, none) and result (success, other_way, failure, censored).", "arm", "result"),
		sessions: counter("session_breakers_total", "Breakers of sessions.", "state"),
		plans: counter("plans_total",
			"Plans for agents that were stuck, by strategy, band (act, propose, escalate) "+
				"and source (planner, learned where it need not be asked, heuristic where it was of no use).", "strategy", "band", "source"),
		approvals: counter("plan_approvals_total", "Plans that waited for a person: waiting, approved, refused, expired.", "result"),

		genDuration: newInstrument(genDurationMetric, "GenAI operation duration.", "s", genDurationBuckets, genOperation, genProvider, genRequestModel, errorType),
		genFirst:    newInstrument(genFirstChunkMetric, "Time to receive the first chunk.", "s", genDurationBuckets, genOperation, genProvider, genRequestModel),
		genTokens:   newInstrument(genTokensMetric, "Number of input and output tokens used.", "{token}", genTokensBuckets, genOperation, genProvider, genRequestModel, genTokenType),
	}
	m.met.Store(&map[string]bool{})
	m.truncated.show()
	m.extra.showAll(nil, kindNames[:])
	m.dropped.showAll(nil, []string{"queue", "subscriber", "log", "sink", "otlp", "recording"})
	for _, c := range recovery.Categories() {
		m.failures.show(string(c))
	}
	m.outcomes.showAll([]string{"guided", "held_out"}, []string{"recovered", "other", "repeated"})
	m.judged.showAll([]string{"note", "none"}, []string{"success", "other_way", "failure", "censored"})
	m.compressions.showAll(nil, []string{"known", "overflow", "observed"})
	m.sessions.showAll(nil, []string{"opened", "closed"})

	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "rebound", Name: "build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision(), "go_version": runtime.Version()}})
	info.Set(1)
	r.MustRegister(info, newBreakers(m))
	gauge := func(name, help string, value func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "rebound", Name: name, Help: help}, value))
	}
	is := func(b bool) float64 { return map[bool]float64{true: 1}[b] }
	gauge("in_flight", "Requests under way.", func() float64 { return float64(m.inFlight.Load()) })
	gauge("store_up", "1 while the store's server answers or there is none, 0 while this replica goes on alone.", func() float64 { return is(m.stands().StoreUp) })
	gauge("config_reload_success", "1 if the latest configuration is in force, 0 if it was refused and the one before stays.", func() float64 { return is(m.stands().Reloaded) })
	gauge("replicas", "Gateways that share the store, as this one sees them.", func() float64 { return float64(m.stands().Replicas) })
	return m
}

// drop returns a function that counts lost events with one reason.
func (m *metrics) drop(where string) func(n int) {
	return func(n int) { m.dropped.add(float64(n), where) }
}

// collector passes the metrics of OpenTelemetry's conventions to its SDK, which sends them.
type collector struct {
	*metrics
	temporality metricdata.Temporality
}

var _ metric.Producer = collector{}

// Produce implements metric.Producer.
func (c collector) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: "rebound"}}
	for _, i := range [...]*instrument{c.genDuration, c.genFirst, c.genTokens} {
		if m, points := i.collect(c.temporality); points > 0 {
			out.Metrics = append(out.Metrics, m)
		}
	}
	if len(out.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{out}, nil
}

// revision returns the commit in the build information.
func revision() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
