package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rebound-llm/rebound/recovery"
)

// breakers collects the number of open breakers, including those of replicas that share the store. A
// breaker counts until it closes, also while half-open. Safe for concurrent use.
type breakers struct {
	*metrics
	desc *prometheus.Desc
}

var _ prometheus.Collector = breakers{}

func newBreakers(m *metrics) breakers {
	return breakers{m, prometheus.NewDesc("rebound_breaker_open",
		"Breakers that are open or half-open: most of what their target was asked failed, and no probe has succeeded since.", []string{"upstream", "model"}, nil)}
}

// Describe implements prometheus.Collector.
func (b breakers) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }

// Collect implements prometheus.Collector.
func (b breakers) Collect(ch chan<- prometheus.Metric) {
	known, open := b.names.Load().targets, map[recovery.Target]int{}
	for t := range known {
		open[t] = 0
	}
	if list := b.open.Load(); list != nil {
		for _, t := range (*list)() {
			if !known[t] {
				t.Model = labelOther
				if !known[t] { // the upstream is not configured either
					t.Upstream = labelOther
				}
			}
			open[t]++
		}
	}
	for t, n := range open {
		ch <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, float64(n), t.Upstream, t.Model)
	}
}
