package telemetry

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// maxLabels limits the number of labels of an instrument.
const maxLabels = 4

// instrument is one metric with all its series. It records for both Prometheus and OpenTelemetry,
// because their own instruments resolve the labels for each measurement, which was half of the cost of
// telemetry per request. Safe for concurrent use.
type instrument struct {
	name, help string
	unit       string    // for OpenTelemetry; Prometheus has it in the name
	bounds     []float64 // upper bounds of a histogram's buckets, ascending; nil: a counter
	labels     []string
	desc       *prometheus.Desc

	mu     sync.Mutex
	series map[[maxLabels]string]*series
	since  time.Time // when the series began
}

// series is the sum of a counter, or a histogram.
type series struct {
	sum      float64
	count    uint64
	buckets  []uint64 // one more than bounds
	min, max float64
}

var _ prometheus.Collector = (*instrument)(nil)

// newInstrument returns an instrument without series.
func newInstrument(name, help, unit string, bounds []float64, labels ...string) *instrument {
	return &instrument{name: name, help: help, unit: unit, bounds: bounds, labels: labels, series: map[[maxLabels]string]*series{},
		since: time.Now(), desc: prometheus.NewDesc(name, help, labels, nil)}
}

// at finds or creates a series; mu is held.
func (i *instrument) at(values []string) *series {
	var key [maxLabels]string
	copy(key[:], values)
	s := i.series[key]
	if s == nil {
		s = &series{}
		if i.bounds != nil {
			s.buckets = make([]uint64, len(i.bounds)+1)
		}
		i.series[key] = s
	}
	return s
}

// show creates a series with value 0, so that rate() sees the first count as an increase and not as a
// new series.
func (i *instrument) show(values ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.at(values)
}

// showAll creates the series of every pair of values, or of every value of second if first is nil.
func (i *instrument) showAll(first, second []string) {
	for _, b := range second {
		if first == nil {
			i.show(b)
		}
		for _, a := range first {
			i.show(a, b)
		}
	}
}

// add adds v, which must not be negative, to a counter's series, or records it in a histogram's.
func (i *instrument) add(v float64, values ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.at(values)
	if i.bounds != nil {
		bucket, _ := slices.BinarySearch(i.bounds, v) // a value equal to a bound belongs to that bucket
		if s.buckets[bucket]++; s.count == 0 {
			s.min, s.max = v, v
		}
		s.min, s.max = min(s.min, v), max(s.max, v)
	}
	s.count++
	s.sum += v
}

// forget removes the series with this value of a label.
func (i *instrument) forget(label, value string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.labels, label)
	for key := range i.series {
		if key[at] == value {
			delete(i.series, key)
		}
	}
}

// Describe implements prometheus.Collector.
func (i *instrument) Describe(ch chan<- *prometheus.Desc) { ch <- i.desc }

// each calls f for every series. f must not keep it.
func (i *instrument) each(f func(values [maxLabels]string, s *series)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for values, s := range i.series {
		f(values, s)
	}
}

// sums returns a counter's sums by one of its labels, without zeros.
func (i *instrument) sums(label string) map[string]float64 {
	sums, at := map[string]float64{}, slices.Index(i.labels, label)
	i.each(func(values [maxLabels]string, s *series) {
		if s.sum > 0 {
			sums[values[at]] += s.sum
		}
	})
	return sums
}

// cumulative returns the number of values up to each bound, and in total.
func (s *series) cumulative() []uint64 {
	list, n := slices.Clone(s.buckets), uint64(0)
	for b := range list {
		n += list[b]
		list[b] = n
	}
	return list
}

// Collect implements prometheus.Collector.
func (i *instrument) Collect(ch chan<- prometheus.Metric) {
	i.each(func(values [maxLabels]string, s *series) {
		if i.bounds == nil {
			ch <- prometheus.MustNewConstMetric(i.desc, prometheus.CounterValue, s.sum, values[:len(i.labels)]...)
			return
		}
		upTo, below := map[float64]uint64{}, s.cumulative()
		for b, bound := range i.bounds {
			upTo[bound] = below[b]
		}
		ch <- prometheus.MustNewConstHistogram(i.desc, s.count, s.sum, upTo, values[:len(i.labels)]...)
	})
}

// collect returns a histogram in OpenTelemetry's form and its number of points. With delta temporality
// it starts again from zero.
func (i *instrument) collect(t metricdata.Temporality) (metricdata.Metrics, int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	var points []metricdata.HistogramDataPoint[float64]
	for key, s := range i.series {
		var list []attribute.KeyValue
		for l, name := range i.labels {
			if key[l] != "" {
				list = append(list, text(name, key[l]))
			}
		}
		points = append(points, metricdata.HistogramDataPoint[float64]{
			Attributes: attribute.NewSet(list...), StartTime: i.since, Time: now, Count: s.count, Bounds: i.bounds, BucketCounts: slices.Clone(s.buckets),
			Min: metricdata.NewExtrema(s.min), Max: metricdata.NewExtrema(s.max), Sum: s.sum,
		})
	}
	if t == metricdata.DeltaTemporality {
		clear(i.series)
		i.since = now
	}
	return metricdata.Metrics{Name: i.name, Unit: i.unit, Description: i.help, Data: metricdata.Histogram[float64]{DataPoints: points, Temporality: t}}, len(points)
}
