package telemetry

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebound-llm/rebound/recovery"
)

// tracing creates a span for each request and a child span for each of its attempts. Other events
// become events of the request's span. Safe for concurrent use.
type tracing struct {
	tracer   trace.Tracer
	sample   float64 // fraction of the requests that begin a trace
	close    func(context.Context) error
	requests sync.Map // of *traced, by id of an active request; none for a chat that is not traced
	measured *metrics
}

// traced is an active request.
type traced struct {
	operation string
	ctx       context.Context // with the request's span
	span      trace.Span      // nil if only its operation is needed

	mu       sync.Mutex // attempts may start in parallel
	attempts map[int]trace.Span
}

func newTracing(t trace.Tracer, measured *metrics, sample float64, close func(context.Context) error) *tracing {
	return &tracing{tracer: t, measured: measured, sample: sample, close: close}
}

// Trace begins the span of a request. It continues the trace in the request's headers, or begins one
// for a fraction of the requests. operation is a name of the conventions. The request's request_done
// ends the span; end must always be called, and ends it if that event did not come.
func (h *Hub) Trace(request, operation, model string, arrived time.Time, header http.Header) (end func()) {
	t := h.tracing
	if len(header["Traceparent"]) == 0 && rand.Float64() >= t.sample { // the SDK's sampling would cost as much as tracing
		if operation == genChat {
			return func() {}
		}
		t.requests.Store(request, &traced{operation: operation})
		return func() { t.requests.Delete(request) }
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header))
	r := &traced{operation: operation}
	r.ctx, r.span = t.tracer.Start(ctx, spanName(operation, model), trace.WithTimestamp(arrived), trace.WithSpanKind(trace.SpanKindServer))
	t.requests.Store(request, r)
	return func() {
		if _, broke := t.requests.LoadAndDelete(request); broke {
			r.abandon()
		}
	}
}

// abandon ends the spans of a request without a request_done.
func (r *traced) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, span := range r.attempts {
		span.End()
	}
	fail(r.span, recovery.Unknown)
	r.span.End()
}

// TraceAttempt begins the span of an attempt and returns the headers that let the upstream continue
// the trace, or nil if the request is not traced.
func (h *Hub) TraceAttempt(request string, number int, target recovery.Target) http.Header {
	r := h.tracing.find(request)
	if r == nil || r.span == nil {
		return nil
	}
	ctx, span := h.tracing.tracer.Start(r.ctx, spanName(r.operation, target.Model), trace.WithSpanKind(trace.SpanKindClient))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts == nil {
		r.attempts = map[int]trace.Span{}
	}
	r.attempts[number] = span
	header := http.Header{}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	return header
}

func spanName(operation, model string) string {
	if model == "" {
		return operation
	}
	return operation + " " + clean(model, maxName)
}

// find returns the state of a request, or nil.
func (t *tracing) find(request string) *traced {
	if v, ok := t.requests.Load(request); ok {
		return v.(*traced)
	}
	return nil
}

// observe adds an event to its request's span; request_done ends the span.
func (t *tracing) observe(r *traced, ev *recovery.Event) {
	if ev.Time.IsZero() {
		ev.Time = time.Now()
	}
	if ev.Name != recovery.EventRequestDone {
		if r.span.IsRecording() {
			rec := record(ev)
			r.span.AddEvent(rec.Message, trace.WithTimestamp(ev.Time), trace.WithAttributes(fields(rec)...))
		}
		return
	}
	t.requests.Delete(ev.Request)
	r.end(ev)
}

// end ends the spans of a request and its attempts.
func (r *traced) end(ev *recovery.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := ev.Attempts
	if len(list) == 0 { // a forwarded request
		list = []recovery.Record{{Target: ev.Target, Class: ev.Class, Started: ev.Time}}
	}
	for number, span := range r.attempts {
		at := ev.Time
		if number <= len(list) && span.IsRecording() {
			a := &list[number-1]
			if ended := a.Started.Add(a.Duration); ended.Before(at) {
				at = ended
			}
			span.SetAttributes(text(genOperation, r.operation), text(genProvider, provider(ev.Format)), text(genRequestModel, a.Target.Model),
				text(own+"upstream", a.Target.Upstream), text(own+"upstream_key", a.Target.Key), text(own+"strategy", a.Strategy),
				attribute.Int(own+"attempt", number), attribute.Bool(own+"parallel", a.Parallel))
			fail(span, a.Class)
		}
		span.End(trace.WithTimestamp(at))
	}
	if r.span.IsRecording() {
		r.span.SetAttributes(fields(record(ev))...)
		r.span.SetAttributes(text(genOperation, r.operation), text(genProvider, provider(ev.Format)), text(genRequestModel, ev.Model), text(genConversation, ev.Session),
			text(genResponse, ev.Target.Model), attribute.Bool(genStream, ev.Streamed), attribute.Int("http.response.status_code", ev.Status))
		if ev.TTFB > 0 && ev.Streamed {
			r.span.SetAttributes(attribute.Float64(genFirstChunk, ev.TTFB.Seconds()))
		}
		if why := finish(ev.Finish); why != "" {
			r.span.SetAttributes(attribute.StringSlice(genFinish, []string{why}))
		}
		for k, n := range byKind(&ev.Usage) {
			if n > 0 {
				r.span.SetAttributes(attribute.Int(usageNames[k], n))
			}
		}
		if class := ev.Class; ended(ev) == outcomeFailed && class == "" {
			fail(r.span, recovery.Unknown)
		} else {
			fail(r.span, class)
		}
	}
	r.span.End(trace.WithTimestamp(ev.Time))
}

func fail(span trace.Span, class recovery.Class) {
	if class != "" {
		span.SetAttributes(text(errorType, string(class)))
		span.SetStatus(codes.Error, string(class))
	}
}

// measure records the conventions' metrics of a request with attempts. label is the model's label,
// from a bounded set.
func (t *tracing) measure(r *traced, ev *recovery.Event, label string) {
	if ev.Attempt == 0 {
		return
	}
	operation, by := genChat, provider(ev.Format)
	if r != nil {
		operation = r.operation
	}
	t.measured.genDuration.add(ev.Duration.Seconds(), operation, by, label, string(ev.Class))
	if ev.Streamed && ev.TTFB > 0 {
		t.measured.genFirst.add(ev.TTFB.Seconds(), operation, by, label)
	}
	used := ev.Usage.Add(ev.Cost) // all billed usage
	if used.Input > 0 {
		t.measured.genTokens.add(sane(used.Input), operation, by, label, "input")
	}
	if used.Output > 0 {
		t.measured.genTokens.add(sane(used.Output), operation, by, label, "output")
	}
}

func text(key, value string) attribute.KeyValue { return attribute.String(key, clean(value, maxName)) }

// fields returns the fields of an event as attributes with the prefix own.
func fields(rec slog.Record) (out []attribute.KeyValue) {
	rec.Attrs(func(a slog.Attr) bool {
		out = appendField(out, own+a.Key, a.Value)
		return true
	})
	return out
}

func appendField(out []attribute.KeyValue, key string, v slog.Value) []attribute.KeyValue {
	switch v.Kind() {
	case slog.KindString:
		return append(out, attribute.String(key, v.String()))
	case slog.KindInt64:
		return append(out, attribute.Int64(key, v.Int64()))
	case slog.KindFloat64:
		return append(out, attribute.Float64(key, v.Float64()))
	case slog.KindBool:
		return append(out, attribute.Bool(key, v.Bool()))
	case slog.KindTime:
		return append(out, attribute.String(key, v.Time().UTC().Format(time.RFC3339Nano)))
	case slog.KindGroup:
		for _, a := range v.Group() {
			out = appendField(out, key+"."+a.Key, a.Value)
		}
		return out
	}
	if names, ok := v.Any().(list); ok { // anything else is the attempts, which have spans of their own
		out = append(out, attribute.String(key, names.String()))
	}
	return out
}
