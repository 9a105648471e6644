package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebound-llm/rebound/recovery"
)

// OTLP configures the export of traces and the metrics of the GenAI conventions. Headers, certificates
// and the service name are set with OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_SERVICE_NAME.
type OTLP struct {
	Endpoint string  `yaml:"endpoint"` // base URL of a collector; empty: nothing is sent
	Protocol string  `yaml:"protocol"` // grpc or http/protobuf
	Sample   float64 `yaml:"sample"`   // fraction of requests that are traced if the client's traceparent does not decide
}

// OTLPDefaults returns the configuration that applies when none is given.
func OTLPDefaults() OTLP { return OTLP{Protocol: protocolHTTP, Sample: 1} }

const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c OTLP) Validate() error {
	var problems recovery.Problems
	if u, err := url.Parse(c.Endpoint); c.Endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		problems.Add("endpoint: must be a URL like http://collector:4318, for grpc http://collector:4317")
	} else if err == nil && (u.User != nil || u.RawQuery != "") {
		problems.Add("endpoint: credentials belong into OTEL_EXPORTER_OTLP_HEADERS")
	}
	problems.Check(c.Protocol != protocolGRPC && c.Protocol != protocolHTTP, "protocol: %q is neither grpc nor http/protobuf", c.Protocol)
	problems.Check(!(c.Sample >= 0 && c.Sample <= 1), "sample: must be from 0 to 1")
	return problems.Err()
}

// Limits of the data that waits for a collector. Requests never wait.
const (
	spanQueue    = 4096
	spanBatch    = 512
	exportTime   = 10 * time.Second
	metricsEvery = time.Minute
)

// open connects to the collector, which need not be reachable.
func (c OTLP) open(ctx context.Context, version string, counted *metrics, log *slog.Logger) (*tracing, error) {
	spans, metrics, err := c.exporters(ctx)
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithHost())
	if err == nil {
		about, err = resource.Merge(resource.NewSchemaless(text("service.name", "rebound"), text("service.version", version)), about)
	}
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	told := &outlet{dropped: counted.drop("otlp"), log: log, says: collectorLost}
	toCollector := sdktrace.NewBatchSpanProcessor(spanOutlet{spans, told}, sdktrace.WithMaxQueueSize(spanQueue), sdktrace.WithMaxExportBatchSize(spanBatch),
		sdktrace.WithExportTimeout(exportTime))
	traces := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(bounded{toCollector, told}),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	meters := metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(metric.NewPeriodicReader(metricOutlet{metrics, told},
		metric.WithInterval(metricsEvery), metric.WithTimeout(exportTime), metric.WithProducer(collector{counted, metrics.Temporality(metric.InstrumentKindHistogram)}))))
	return newTracing(traces.Tracer("rebound", trace.WithInstrumentationVersion(version)), counted, c.Sample, func(ctx context.Context) error {
		return errors.Join(traces.Shutdown(ctx), meters.Shutdown(ctx))
	}), nil
}

// exporters returns the SDK's exporters.
func (c OTLP) exporters(ctx context.Context) (sdktrace.SpanExporter, metric.Exporter, error) {
	if c.Protocol == protocolGRPC {
		t, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(c.Endpoint), otlptracegrpc.WithTimeout(exportTime))
		if err != nil {
			return nil, nil, err
		}
		m, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(c.Endpoint), otlpmetricgrpc.WithTimeout(exportTime))
		return t, m, err
	}
	base, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	t, err := otlptrace.New(ctx, otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(base.JoinPath("v1/traces").String()), otlptracehttp.WithTimeout(exportTime)))
	if err != nil {
		return nil, nil, err
	}
	m, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(base.JoinPath("v1/metrics").String()), otlpmetrichttp.WithTimeout(exportTime))
	return t, m, err
}

const collectorLost = "the OpenTelemetry collector did not take what was sent"

// outlet counts losses on the way to a destination, and logs them at most once a minute.
type outlet struct {
	dropped func(n int)
	log     *slog.Logger
	says    string
	waiting atomic.Int64 // spans in the queue
	said    atomic.Int64 // when the last loss was logged, in Unix seconds
}

func (o *outlet) lose(n int, why error) {
	o.dropped(n)
	now, last := time.Now().Unix(), o.said.Load()
	if now-last >= int64(time.Minute/time.Second) && o.said.CompareAndSwap(last, now) {
		o.log.Warn(o.says, "lost", n, "error", why)
	}
}

var errBehind = errors.New("too many spans wait for the collector")

// bounded counts spans that the SDK's queue would drop silently.
type bounded struct {
	sdktrace.SpanProcessor
	*outlet
}

// OnEnd implements sdktrace.SpanProcessor.
func (b bounded) OnEnd(s sdktrace.ReadOnlySpan) {
	switch {
	case !s.SpanContext().IsSampled():
	case b.waiting.Add(1) > spanQueue:
		b.waiting.Add(-1)
		b.lose(1, errBehind)
	default:
		b.SpanProcessor.OnEnd(s)
	}
}

type spanOutlet struct {
	sdktrace.SpanExporter
	*outlet
}

// ExportSpans implements sdktrace.SpanExporter.
func (o spanOutlet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := o.SpanExporter.ExportSpans(ctx, spans); err != nil {
		o.lose(len(spans), err)
	}
	o.waiting.Add(-int64(len(spans)))
	return nil // it was logged
}

type metricOutlet struct {
	metric.Exporter
	*outlet
}

// Export implements metric.Exporter.
func (o metricOutlet) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if err := o.Exporter.Export(ctx, m); err != nil {
		o.lose(0, err)
	}
	return nil // it was logged; the next export has all of it
}
