package telemetry

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Buckets in seconds. A completion takes from a fraction of a second to many
// minutes, so the bounds are spread evenly over the orders of magnitude; they
// include the defaults of first-token limits and deadlines (30 s, 60 s, 600 s).
var (
	durationBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200}
	ttfbBuckets     = []float64{.05, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600}
)

// metrics are all metrics of the gateway. A test pins names, labels and help.
type metrics struct {
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	ttfb       *prometheus.HistogramVec
	attempts   *prometheus.CounterVec
	recoveries *prometheus.CounterVec
	cooldowns  *prometheus.CounterVec
	fallbacks  *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	billed     *prometheus.CounterVec
	recovery   *prometheus.CounterVec
	spend      atomic.Pointer[func(model, key string, tokens int, money float64)]
	keys       *keys
	agent      *agent
	extra      [kinds]prometheus.Counter
	inFlight   prometheus.Gauge
	breakers   *breakers
	condition  atomic.Pointer[func() Condition]

	droppedQueue, droppedSubscriber, droppedLog, droppedSink, droppedOTLP, droppedRecording prometheus.Counter

	naming sync.Mutex // one change of the table, or of what was met, at a time
	table  atomic.Pointer[table]
	met    atomic.Pointer[map[string]*modelSeries] // models that nobody configured; replaced, never changed
}

func newMetrics(r prometheus.Registerer, version string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "rebound", Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "rebound", Name: name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	m := &metrics{
		requests: counter("requests_total",
			"Requests, by what the client got. Outcome: ok, fallback (answered at once by a target of a later rank: the first is not asked now), "+
				"recovered (answered after something was done), failed, rejected (no attempt was made), canceled "+
				"(the client left).",
			"model", "status_class", "outcome"),
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
		recovery: counter("recovery_spent_total", "Money spent on recovery, beyond the answers, in the currency of the configured prices.", "model", "key"),
		keys:     newKeys(counter),
		agent:    newAgent(counter),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "rebound", Name: "in_flight", Help: "Requests under way."}),
		breakers: newBreakers(),
	}
	m.met.Store(&map[string]*modelSeries{})
	extra := counter("extra_tokens_total", "Tokens spent beyond the delivered answers, as upstreams reported them.", "kind")
	for k, name := range kindNames {
		m.extra[k] = extra.WithLabelValues(name)
	}
	dropped := counter("events_dropped_total",
		"Events lost: queue (too many waited), subscriber (a reader of the live stream was too slow), log (writing failed), sink (the store's log failed), "+
			"otlp (spans that the collector did not take), recording (requests that were not recorded).", "where")
	m.droppedQueue = dropped.WithLabelValues("queue")
	m.droppedSubscriber = dropped.WithLabelValues("subscriber")
	m.droppedLog = dropped.WithLabelValues("log")
	m.droppedSink = dropped.WithLabelValues("sink")
	m.droppedOTLP = dropped.WithLabelValues("otlp")
	m.droppedRecording = dropped.WithLabelValues("recording")

	version, revision := build(version)
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "rebound", Name: "build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "go_version": runtime.Version()}})
	info.Set(1)
	r.MustRegister(m.inFlight, m.breakers, info)
	m.conditions(r)
	return m
}

// build completes what the caller knows of the running program with what the
// linker noted.
func build(version string) (v, revision string) {
	v, revision = version, "unknown"
	if b, ok := debug.ReadBuildInfo(); ok {
		if v == "" {
			v = b.Main.Version
		}
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	if v == "" {
		v = "unknown"
	}
	return v, revision
}
