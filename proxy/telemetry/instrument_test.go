package telemetry

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	api "go.opentelemetry.io/otel/metric"
)

// What is collected is what the SDK's own histogram makes of the same values.
func TestHistograms(t *testing.T) {
	for _, temporality := range []metricdata.Temporality{metricdata.CumulativeTemporality, metricdata.DeltaTemporality} {
		mine := collector{newMetrics(prometheus.NewRegistry(), ""), temporality}
		own := metric.NewManualReader(metric.WithTemporalitySelector(func(metric.InstrumentKind) metricdata.Temporality { return temporality }))
		collected := metric.NewManualReader(metric.WithProducer(mine))
		providers := map[metric.Reader]*metric.MeterProvider{}
		for _, r := range []metric.Reader{own, collected} {
			providers[r] = metric.NewMeterProvider(metric.WithReader(r))
			t.Cleanup(func() { _ = providers[r].Shutdown(context.Background()) })
		}
		oracle, err := providers[own].Meter("rebound").Float64Histogram(genDurationMetric, api.WithExplicitBucketBoundaries(genDurationBuckets...))
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for collection := range 3 {
			for range 500 {
				v := math.Exp(random.NormFloat64()*3 - 1)
				if random.IntN(4) == 0 {
					v = genDurationBuckets[random.IntN(len(genDurationBuckets))]
				}
				oracle.Record(context.Background(), v, api.WithAttributes(attribute.String(genOperation, genChat), attribute.String(genProvider, genOpenAI),
					attribute.String(genRequestModel, "m"), attribute.String(errorType, "timeout")))
				mine.genDuration.add(v, genChat, genOpenAI, "m", "timeout")
			}
			want, got := points(t, own), points(t, collected)
			if len(want) != 1 || len(got) != 1 {
				t.Fatalf("%d and %d series", len(want), len(got))
			}
			w, g := want[0], got[0]
			if !w.Attributes.Equals(&g.Attributes) || w.Count != g.Count || !slices.Equal(w.Bounds, g.Bounds) || !slices.Equal(w.BucketCounts, g.BucketCounts) ||
				w.Min != g.Min || w.Max != g.Max || math.Abs(w.Sum-g.Sum) > 1e-6 || g.StartTime.After(g.Time) {
				t.Errorf("%v, collection %d: %+v, want %+v", temporality, collection, g, w)
			}
		}
	}
}

func points(t *testing.T, r metric.Reader) (all []metricdata.HistogramDataPoint[float64]) {
	var out metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	for _, s := range out.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != genDurationMetric || m.Data == nil || s.Scope.Name != "rebound" {
				t.Errorf("%+v", m)
			}
			all = append(all, m.Data.(metricdata.Histogram[float64]).DataPoints...)
		}
	}
	return all
}
