package telemetry

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/rebound-llm/rebound/recovery"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update rewrites it)\n%s", path, diff.Diff("want", want, "got", got))
	}
}

// buffer is a writer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newHub makes a hub with the test's names; it is closed with the test.
func newHub(t testing.TB, cfg Config, out io.Writer) *Hub {
	t.Helper()
	h := New(cfg, out, "1.2.3", labels())
	t.Cleanup(func() { closeHub(t, h) })
	return h
}

func closeHub(t testing.TB, h *Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
}

func labels() Labels {
	return Labels{
		Models: map[string][]recovery.Target{
			"coder": {{Upstream: "openai", Model: "gpt-5"}, {Upstream: "azure", Model: "gpt-5-eu"}},
			"small": {{Upstream: "openai", Model: "gpt-5-mini"}},
		},
		Upstreams:  map[string][]string{"openai": {"main", "spare"}, "azure": nil},
		Specs:      []*recovery.Spec{{Class: recovery.RateLimit, Cools: true}, {Class: recovery.Timeout}, {Class: recovery.StreamCut}},
		Strategies: []string{"move", "resend", "resume", "wait"},
	}
}

// scrape reads the metrics as Prometheus does.
func scrape(t testing.TB, h *Hub) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// healthy is the event of a request to which nothing happened.
func healthy() recovery.Event {
	target := recovery.Target{Upstream: "openai", Model: "gpt-5", Key: "main"}
	return recovery.Event{
		Name: recovery.EventRequestDone, Time: at, Origin: recovery.Origin{Request: "req_0123456789abcdef", Session: "s1", Model: "coder", Streamed: true, Mode: recovery.ModeAct}, Target: target,
		Attempt: 1, Status: 200, Duration: 3*time.Second + 400*time.Millisecond, Ending: recovery.Ending{TTFB: 420 * time.Millisecond, Usage: recovery.Usage{Input: 1200, Output: 340, CacheRead: 1024}, Attempts: []recovery.Record{{Target: target, Started: at, Duration: 3 * time.Second}}},
	}
}

// recovered is the event of a request that needed a second attempt.
func recovered() recovery.Event {
	ev := healthy()
	first := recovery.Record{Target: ev.Target, Class: recovery.Timeout, Started: at, Duration: 30 * time.Second}
	ev.Target = recovery.Target{Upstream: "azure", Model: "gpt-5-eu", Key: "client-0011223344556677"}
	ev.Attempts = []recovery.Record{first, {Target: ev.Target, Strategy: "parallel", Parallel: true, Started: at, Duration: 2 * time.Second}}
	ev.Attempt, ev.Recovery, ev.Cost, ev.Finish = 2, "parallel", recovery.Usage{Input: 1200}, recovery.FinishCalls
	return ev
}

var at = time.Date(2026, 3, 1, 3, 0, 0, 123456789, time.FixedZone("CET", 3600))

// ownMetrics returns a registry with the metrics of a hub, without those that describe the process.
func ownMetrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	newMetrics(r, "1.2.3").setLabels(labels())
	return r
}
