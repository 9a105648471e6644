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
	lines    slog.Handler // events in the text format; nil for JSON
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
	tail     Tail   // of the log that the sink writes; nil for none
	replica  string // in the ids of events
	count    int    // of events that were given an id

	tracing *tracing // nil: no collector is configured

	recordings outlet

	mu     sync.RWMutex // guards closed, and queue against being closed while sent to
	closed bool
	queue  chan *recovery.Event

	abandon atomic.Bool // Close gave up: what is left is not written
	done    chan struct{}
	lost    atomic.Int64
	noted   int64 // of lost, how many a line has reported
	noteAt  time.Time
}

var _ recovery.Observer = (*Hub)(nil)

// Option changes how a Hub is made.
type Option func(*options)

type options struct {
	registry *prometheus.Registry
	version  string
	labels   Labels
}

// WithVersion sets the version that rebound_build_info shows.
func WithVersion(v string) Option { return func(o *options) { o.version = v } }

// WithLabels sets the values that labels may have; see [Hub.Reload] for later changes.
func WithLabels(l Labels) Option { return func(o *options) { o.labels = l } }

// New makes a hub that writes log lines to out, one Write for each, never two
// at a time. cfg must be valid. Close ends the hub's goroutine.
func New(cfg Config, out io.Writer, opts ...Option) *Hub {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.registry == nil {
		o.registry = prometheus.NewRegistry()
		o.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	h := &Hub{
		metrics: newMetrics(o.registry, o.version), registry: o.registry,
		queue: make(chan *recovery.Event, max(cfg.Queue, 1)), done: make(chan struct{}),
		version: o.version, started: time.Now(), replica: fmt.Sprintf("%08x", rand.Uint32()),
	}
	h.out = &output{w: out, dropped: h.metrics.drop("log")}
	h.feed = newFeed(h.metrics.drop("subscriber"))
	h.recordings.dropped, h.recordings.says = h.metrics.drop("recording"), "a request was not recorded"
	h.log = slog.New(handler(cfg.Format, h.out, &slog.HandlerOptions{Level: &h.level, ReplaceAttr: ownKeys}))
	if cfg.Format == "text" {
		h.lines = handler(cfg.Format, h.out, &slog.HandlerOptions{Level: &h.level, ReplaceAttr: eventKeys})
	}
	h.recordings.log = h.log
	h.Reload(cfg, o.labels)
	go h.run()
	return h
}

// Logger is the process's own logger. It writes to the same place, in the same
// format and from the same level on as events; secrets are redacted.
func (h *Hub) Logger() *slog.Logger { return h.log }

// Reload applies what of a configuration may change while the process runs:
// the level, which requests are logged, and the values of labels. Series of
// names that are gone are removed. Format and queue stay as they are.
func (h *Hub) Reload(cfg Config, l Labels) {
	h.SetLevel(parseLevel(cfg.Level))
	h.requests.Store(cfg.Requests)
	h.slow.Store(int64(cfg.Slow))
	h.metrics.setLabels(l)
}

// SetLevel sets the lowest level that is logged. The live stream, the sink and
// the metrics have all events.
func (h *Hub) SetLevel(l slog.Level) { h.level.Set(l) }

// SetSink makes f receive every noteworthy event as JSON with its id, without a line
// feed at the end. It is called by one goroutine, in order; while it blocks, events
// wait in the queue. f may keep the bytes and must not change them. nil ends it.
func (h *Hub) SetSink(f func([]byte)) {
	if f == nil {
		h.sink.Store(nil)
		return
	}
	h.sink.Store(&f)
}

// SetOpen sets what lists the targets whose breakers are open, for the metric. It is called while the
// metrics are read and must not block.
func (h *Hub) SetOpen(open func() []recovery.Target) { h.metrics.open.Store(&open) }

// Export sends traces and the metrics of the GenAI conventions to a collector, until
// Close. It is called once, before the first event; without it, or without an
// endpoint, [Hub.Traces] is false and nothing is kept for it.
func (h *Hub) Export(ctx context.Context, cfg OTLP) (err error) {
	if cfg.Endpoint != "" {
		h.tracing, err = cfg.open(ctx, h.version, h.metrics, h.log)
	}
	return err
}

// LoseRecording counts a request that could not be recorded, and says so now and then.
func (h *Hub) LoseRecording(why error) { h.recordings.lose(1, why) }

// Traces reports whether requests are traced.
func (h *Hub) Traces() bool { return h.tracing != nil }

// Begin counts a request as under way, until End.
func (h *Hub) Begin() { h.metrics.inFlight.Add(1) }

// End counts a request as no longer under way.
func (h *Hub) End() { h.metrics.inFlight.Add(-1) }

// Handler serves the metrics.
func (h *Hub) Handler() http.Handler {
	return promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 8,
	})
}

// Observe implements recovery.Observer. It counts the event and, if it is
// worth a line or somebody listens, queues it; when the queue is full the
// event is dropped and counted. It never blocks.
func (h *Hub) Observe(ev recovery.Event) {
	h.metrics.count(&ev)
	if t := h.tracing; t != nil {
		r := t.find(ev.Request)
		if ev.Name == recovery.EventRequestDone {
			t.measure(r, &ev, h.metrics.label(ev.Model))
		}
		if r != nil && r.span != nil {
			traced := ev // only then it goes to the heap
			t.observe(r, &traced)
		}
	}
	if h.plain(&ev) {
		h.latest.keep(&ev)
	}
	if h.plain(&ev) && !h.requests.Load() && !h.feed.wantsAll() || ev.Name == recovery.EventFallbackUsed && !h.fallen.first(&ev) {
		return
	}
	e := ev // only what is queued goes to the heap
	if len(e.Attempts) == 1 {
		e.Attempts = nil // the event says as much, and what waits here must not hold the request's memory
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

// lose counts an event that was not written.
func (h *Hub) lose() {
	h.lost.Add(1)
	h.metrics.dropped.add(1, "queue")
}

// run writes what is queued until the queue is closed and empty.
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

// plain reports whether ev tells of a request that nothing happened to, and that was not slow.
func (h *Hub) plain(ev *recovery.Event) bool {
	slow := time.Duration(h.slow.Load())
	return ev.Uneventful() && (slow == 0 || ev.Duration < slow)
}

// kept reports whether ev belongs to the history that the ring and the sink hold.
func (h *Hub) kept(ev *recovery.Event) bool {
	if ev.Name == recovery.EventRequestDone && ev.Attempt == 0 && !ev.Others { // turned away before any attempt
		return ev.Peer != "" && h.refused.first(ev)
	}
	return !h.plain(ev)
}

// deliver renders an event once, for everybody.
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

// drain keeps a broken sink from ending the process.
func (h *Hub) drain(sink func([]byte), data []byte) {
	defer func() {
		if p := recover(); p != nil {
			h.metrics.dropped.add(1, "sink")
			h.log.Error("the event sink panicked", "panic", fmt.Sprint(p))
		}
	}()
	sink(data)
}

// noteEvery is the shortest time between two lines about dropped events.
const noteEvery = 10 * time.Second

// noteDropped says that lines are missing, where the lines are missed.
func (h *Hub) noteDropped() {
	n := h.lost.Load()
	if n == h.noted || time.Since(h.noteAt) < noteEvery {
		return
	}
	h.log.Warn("events were dropped because too many waited to be written", "dropped", n-h.noted, "total", n)
	h.noted, h.noteAt = n, time.Now()
}

// Disconnect ends all live streams and refuses new ones. A server that drains
// calls it first (http.Server.RegisterOnShutdown): streams do not end by themselves.
func (h *Hub) Disconnect() { h.feed.close() }

// Close ends the live streams and writes what is queued. Events that come
// later are counted, and dropped as log lines. If ctx ends first, what is still queued
// is dropped and counted, and the error says how much it was.
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
