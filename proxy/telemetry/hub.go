package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rebound-llm/rebound/recovery"
)

// Hub receives every event of the gateway. It lives as long as the process;
// a reload changes it with [Hub.Reload]. All methods are safe for concurrent use.
type Hub struct {
	metrics  *metrics
	registry *prometheus.Registry
	feed     *feed
	log      *slog.Logger
	lines    slog.Handler // writes events in the text format; nil for JSON
	out      *output
	level    slog.LevelVar
	requests atomic.Bool
	slow     atomic.Int64 // see Config.Slow
	sink     atomic.Pointer[func([]byte)]
	version  string
	started  time.Time
	samples  samples
	fallen   fallbacks
	refused  refusals
	latest   latest
	tail     Tail   // reads the log that the sink writes; nil without one
	replica  string // in event ids
	count    int    // number of the latest event id

	tracing *tracing // nil: no collector is configured

	recordings outlet

	mu     sync.RWMutex // guards closed, and the queue against a close during a send
	closed bool
	queue  chan *recovery.Event

	abandon atomic.Bool // Close has given up: the rest of the queue is dropped
	done    chan struct{}
	lost    atomic.Int64
	noted   int64 // how many of lost the log has reported
	noteAt  time.Time
}

var _ recovery.Observer = (*Hub)(nil)

// New creates a hub that writes log lines to out, one Write for each, never concurrently. cfg must be
// valid. Close ends the hub's goroutine.
func New(cfg Config, out io.Writer, version string, labels Labels) *Hub {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h := &Hub{
		metrics: newMetrics(registry, version), registry: registry,
		queue: make(chan *recovery.Event, cfg.Queue), done: make(chan struct{}),
		version: version, started: time.Now(), replica: fmt.Sprintf("%08x", rand.Uint32()),
	}
	h.out = &output{w: out, dropped: h.metrics.drop("log")}
	h.feed = newFeed(h.metrics.drop("subscriber"))
	h.recordings.dropped, h.recordings.says = h.metrics.drop("recording"), "a request was not recorded"
	h.log = slog.New(handler(cfg.Format, h.out, &slog.HandlerOptions{Level: &h.level, ReplaceAttr: ownKeys}))
	if cfg.Format == "text" {
		h.lines = handler(cfg.Format, h.out, &slog.HandlerOptions{Level: &h.level, ReplaceAttr: eventKeys})
	}
	h.recordings.log = h.log
	h.Reload(cfg, labels)
	go h.run()
	return h
}

// Logger returns the process's own logger. It has the output, format and level of events; secrets are
// redacted.
func (h *Hub) Logger() *slog.Logger { return h.log }

// Reload applies the settings that may change at run time: the lowest logged level (the live stream,
// the sink and the metrics get all events), which requests are logged, and the label values. It removes the series of removed names. Format and queue do not change.
func (h *Hub) Reload(cfg Config, l Labels) {
	_ = h.level.UnmarshalText([]byte(cfg.Level)) // Config.Validate has checked it
	h.requests.Store(cfg.Requests)
	h.slow.Store(int64(cfg.Slow))
	h.metrics.setLabels(l)
}

// SetSink sets a function that receives every eventful event as JSON with its id, without a line feed
// at the end. One goroutine calls it, in order; while it blocks, events wait in the queue. f may keep
// the bytes and must not change them.
func (h *Hub) SetSink(f func([]byte)) { h.sink.Store(&f) }

// SetOpen sets the function that returns the targets with open breakers, for the metric. It is called
// while the metrics are read and must not block.
func (h *Hub) SetOpen(open func() []recovery.Target) { h.metrics.open.Store(&open) }

// Export sends traces and the metrics of the GenAI conventions to a collector, until Close. It must be
// called once, before the first event. Without it, or without an endpoint, [Hub.Traces] is false and
// no traces are recorded.
func (h *Hub) Export(ctx context.Context, cfg OTLP) (err error) {
	if cfg.Endpoint != "" {
		h.tracing, err = cfg.open(ctx, h.version, h.metrics, h.log)
	}
	return err
}

// LoseRecording counts a request that could not be recorded, and logs it at most once a minute.
func (h *Hub) LoseRecording(why error) { h.recordings.lose(1, why) }

// Traces reports whether requests are traced.
func (h *Hub) Traces() bool { return h.tracing != nil }

// Begin counts a request as active, until End.
func (h *Hub) Begin() { h.metrics.inFlight.Add(1) }

// End counts a request as no longer active.
func (h *Hub) End() { h.metrics.inFlight.Add(-1) }

// Handler serves the metrics.
func (h *Hub) Handler() http.Handler {
	return promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 8,
	})
}

// Observe implements recovery.Observer. It counts the event and queues it if it is eventful or a
// subscriber wants it; if the queue is full it drops the event and counts that. It never blocks.
func (h *Hub) Observe(ev recovery.Event) {
	h.metrics.count(&ev)
	if t := h.tracing; t != nil {
		r := t.find(ev.Request)
		if ev.Name == recovery.EventRequestDone {
			t.measure(r, &ev, h.metrics.label(ev.Model))
		}
		if r != nil && r.span != nil {
			traced := ev // a copy, so that untraced events stay on the stack
			t.observe(r, &traced)
		}
	}
	if h.plain(&ev) {
		h.latest.keep(&ev)
	}
	if h.plain(&ev) && !h.requests.Load() && !h.feed.wantsAll() || ev.Name == recovery.EventFallbackUsed && !h.fallen.first(&ev) {
		return
	}
	e := ev // a copy, so that other events stay on the stack
	if len(e.Attempts) == 1 {
		e.Attempts = nil // the event has the same data, and a queued event must not hold the request's memory
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if !h.closed {
		select {
		case h.queue <- &e:
			return
		default:
		}
	}
	h.lose()
}

// lose counts an event that was dropped from the queue.
func (h *Hub) lose() {
	h.lost.Add(1)
	h.metrics.dropped.add(1, "queue")
}

// run writes queued events until the queue is closed and empty.
func (h *Hub) run() {
	defer close(h.done)
	r := newRenderer()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for open := true; open; {
		var ev *recovery.Event
		select {
		case <-tick.C:
			h.samples.add(h.look())
			for _, ev := range h.fallen.due(time.Now()) {
				h.deliver(r, &ev)
			}
			continue
		case ev, open = <-h.queue:
		}
		switch {
		case !open:
		case h.abandon.Load():
			h.lose()
		default:
			h.deliver(r, ev)
			h.noteDropped()
		}
	}
	for _, ev := range h.fallen.due(time.Now().Add(fallbackEvery)) {
		h.deliver(r, &ev)
	}
	h.noteAt = time.Time{}
	h.noteDropped()
}

// plain reports whether ev is an uneventful and fast request.
func (h *Hub) plain(ev *recovery.Event) bool {
	slow := time.Duration(h.slow.Load())
	return ev.Uneventful() && (slow == 0 || ev.Duration < slow)
}

// kept reports whether ev belongs to the history in the ring and the sink.
func (h *Hub) kept(ev *recovery.Event) bool {
	if ev.Name == recovery.EventRequestDone && ev.Attempt == 0 && !ev.Others { // rejected before any attempt
		return ev.Peer != "" && h.refused.first(ev)
	}
	return !h.plain(ev)
}

// deliver renders an event once and sends it to all outputs.
func (h *Hub) deliver(r *renderer, ev *recovery.Event) {
	history := h.kept(ev)
	rec := record(ev)
	line := r.render(rec)
	id := h.nextID(ev.Time)
	data := withID(id, line)
	to := forAll
	if !history {
		to = forThose
	}
	h.feed.publish(message{id: id, name: rec.Message, data: data}, to)

	if h.level.Level() <= rec.Level && (!h.plain(ev) || h.requests.Load()) {
		if h.lines != nil {
			_ = h.lines.Handle(context.Background(), rec)
		} else {
			_, _ = h.out.Write(line)
		}
	}
	if sink := h.sink.Load(); sink != nil && history {
		h.drain(*sink, data)
	}
}

// drain calls the sink. It recovers panics, so that a broken sink does not end the process.
func (h *Hub) drain(sink func([]byte), data []byte) {
	defer func() {
		if p := recover(); p != nil {
			h.metrics.dropped.add(1, "sink")
			h.log.Error("the event sink panicked", "panic", fmt.Sprint(p))
		}
	}()
	sink(data)
}

// noteEvery is the shortest interval between two log lines about dropped events.
const noteEvery = 10 * time.Second

// noteDropped logs how many events were dropped.
func (h *Hub) noteDropped() {
	n := h.lost.Load()
	if n == h.noted || time.Since(h.noteAt) < noteEvery {
		return
	}
	h.log.Warn("events were dropped because too many waited to be written", "dropped", n-h.noted, "total", n)
	h.noted, h.noteAt = n, time.Now()
}

// Disconnect ends all live streams and refuses new ones. A server that drains calls it first
// (http.Server.RegisterOnShutdown), because the streams do not end by themselves.
func (h *Hub) Disconnect() { h.feed.close() }

// Close ends the live streams and writes the queue. Later events are counted in the metrics but not
// written. If ctx ends first, the rest of the queue is dropped and counted, and the error has its
// length.
func (h *Hub) Close(ctx context.Context) error {
	h.Disconnect()
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.queue)
	}
	h.mu.Unlock()
	var lost error
	if h.tracing != nil {
		if lost = h.tracing.close(ctx); lost != nil {
			h.log.Warn(collectorLost, "error", lost)
		}
	}
	select {
	case <-h.done:
		return lost
	case <-ctx.Done():
		h.abandon.Store(true)
		return fmt.Errorf("writing the last %d events: %w", len(h.queue), context.Cause(ctx))
	}
}
