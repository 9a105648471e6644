package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// histograms are the conventions' metrics, which the SDK collects and sends. Its own
// instruments were half of what being watched costs a request: they look at the labels of
// each measurement again, and keep examples. Safe for concurrent use.
type histograms struct {
	temporality metricdata.Temporality

	mu     sync.Mutex
	since  time.Time
	series map[series]*histogram // as many as there are names of labels
}

var _ metric.Producer = (*histograms)(nil)

// series is a metric and its labels: what all have, and one more.
type series struct {
	metric                        int // place in genMetrics
	operation, model, name, value string
}

type histogram struct {
	attributes attribute.Set
	buckets    []uint64
	count      uint64
	sum        float64
	min, max   float64
}

// The places in genMetrics.
const (
	genDuration = iota
	genFirst
	genTokens
)

var genMetrics = [...]struct {
	name, unit, description string
	bounds                  []float64
}{
	genDuration: {genDurationMetric, "s", "GenAI operation duration.", genDurationBuckets},
	genFirst:    {genFirstChunkMetric, "s", "Time to receive the first chunk.", genDurationBuckets},
	genTokens:   {genTokensMetric, "{token}", "Number of input and output tokens used.", genTokensBuckets},
}

func newHistograms(t metricdata.Temporality) *histograms {
	return &histograms{temporality: t, since: time.Now(), series: map[series]*histogram{}}
}

// record adds a value to a series.
func (h *histograms) record(s series, v float64) {
	bounds := genMetrics[s.metric].bounds
	bucket, _ := slices.BinarySearch(bounds, v) // a bound is in the bucket below it
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.series[s]
	if p == nil {
		list := []attribute.KeyValue{text(genOperation, s.operation), text(genProvider, genOpenAI), text(genRequestModel, s.model)}
		if s.value != "" {
			list = append(list, text(s.name, s.value))
		}
		p = &histogram{attributes: attribute.NewSet(list...), buckets: make([]uint64, len(bounds)+1), min: v, max: v}
		h.series[s] = p
	}
	p.buckets[bucket]++
	p.count++
	p.sum += v
	p.min, p.max = min(p.min, v), max(p.max, v)
}

// Produce implements metric.Producer.
func (h *histograms) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	var points [len(genMetrics)][]metricdata.HistogramDataPoint[float64]
	for s, p := range h.series {
		points[s.metric] = append(points[s.metric], metricdata.HistogramDataPoint[float64]{
			Attributes: p.attributes, StartTime: h.since, Time: now, Count: p.count, Bounds: genMetrics[s.metric].bounds, BucketCounts: slices.Clone(p.buckets),
			Min: metricdata.NewExtrema(p.min), Max: metricdata.NewExtrema(p.max), Sum: p.sum,
		})
	}
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: "rebound"}}
	for i, m := range genMetrics {
		if len(points[i]) > 0 {
			out.Metrics = append(out.Metrics, metricdata.Metrics{Name: m.name, Unit: m.unit, Description: m.description,
				Data: metricdata.Histogram[float64]{DataPoints: points[i], Temporality: h.temporality}})
		}
	}
	if h.temporality == metricdata.DeltaTemporality {
		clear(h.series)
		h.since = now
	}
	if len(out.Metrics) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{out}, nil
}
