package traces_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// span is what the collector sent on of one span.
type span struct {
	trace, id, parent, name, kind string
	begin, end                    int64 // nanoseconds
	failed                        bool
	attributes                    map[string]gjson.Result
	events                        []string
}

// sink takes what the collector sends on, as OTLP in JSON.
type sink struct {
	mu       sync.Mutex
	spans    []span
	services map[string]int
	strange  []string
}

// ServeHTTP implements http.Handler.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" && r.URL.Path != "/v1/metrics" || !gjson.ValidBytes(body) {
		s.strange = append(s.strange, fmt.Sprintf("%s: %v, %.100s", r.URL.Path, err, body))
		return
	}
	attributes := func(list gjson.Result) map[string]gjson.Result {
		out := map[string]gjson.Result{}
		for _, a := range list.Array() {
			a.Get("value").ForEach(func(_, v gjson.Result) bool { out[a.Get("key").Str] = v; return false })
		}
		return out
	}
	for _, resource := range gjson.GetBytes(body, "resourceSpans").Array() {
		s.services[attributes(resource.Get("resource.attributes"))["service.name"].Str]++
		for _, v := range resource.Get("scopeSpans.#.spans|@flatten").Array() {
			one := span{trace: v.Get("traceId").Str, id: v.Get("spanId").Str, parent: v.Get("parentSpanId").Str, name: v.Get("name").Str, kind: v.Get("kind").Raw,
				begin: v.Get("startTimeUnixNano").Int(), end: v.Get("endTimeUnixNano").Int(), failed: v.Get("status.code").Int() == 2, attributes: attributes(v.Get("attributes"))}
			for _, e := range v.Get("events").Array() {
				one.events = append(one.events, e.Get("name").Str)
			}
			s.spans = append(s.spans, one)
		}
	}
}

// The kinds of spans in OTLP.
const (
	server = "2"
	client = "3"
)

// The collector gets the demo's traces over either protocol. Of each request it has a
// span, and below that one for each attempt, within its time, with what went wrong.
func TestDemo(t *testing.T) {
	collector := os.Getenv("REBOUND_TEST_COLLECTOR")
	if collector == "" {
		t.Skip("REBOUND_TEST_COLLECTOR names no collector: make collector builds it and runs this")
	}
	rebound := filepath.Join(t.TempDir(), "rebound")
	if out, err := exec.Command("go", "build", "-o", rebound, "../../cmd/rebound").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := &sink{services: map[string]int{}}
			next := httptest.NewServer(s)
			defer next.Close()
			ports := map[string]string{"grpc": address(t), "http/protobuf": address(t)}
			stop := start(t, collector, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {otlphttp: {endpoint: %q, encoding: json, compression: none}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlphttp]}, metrics: {receivers: [otlp], exporters: [otlphttp]}}
`, ports["grpc"], ports["http/protobuf"], next.URL), ports)
			demo := exec.Command(rebound, "demo")
			demo.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+ports[protocol], "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol, "OTEL_SERVICE_NAME=demo of "+protocol)
			if out, err := demo.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			stop() // it sends on what it has
			s.check(t, "demo of "+protocol)
		})
	}
}

// check reports what is wrong with the trees.
func (s *sink) check(t *testing.T, service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.strange) > 0 || len(s.services) != 1 || s.services[service] == 0 {
		t.Errorf("came: %q, from %v", s.strange, s.services)
	}
	requests, attempts := map[string]span{}, map[string][]span{}
	for _, one := range s.spans {
		switch {
		case one.kind == server && one.parent == "":
			requests[one.trace+one.id] = one
		case one.kind == client && one.parent != "":
			attempts[one.trace+one.parent] = append(attempts[one.trace+one.parent], one)
		default:
			t.Errorf("a span of no place in a tree: %+v", one)
		}
	}
	recovered, strategies := 0, map[string]bool{}
	for id, r := range requests {
		list := attempts[id]
		delete(attempts, id)
		slices.SortFunc(list, func(a, b span) int {
			return cmp.Compare(a.attributes["rebound.attempt"].Int(), b.attributes["rebound.attempt"].Int())
		})
		if n := r.attributes["rebound.attempt"].Int(); n != int64(len(list)) {
			t.Errorf("%s: %d attempts are told and %d have a span", r.name, n, len(list))
		}
		if r.attributes["gen_ai.operation.name"].Str != "chat" || r.name != "chat "+r.attributes["gen_ai.request.model"].Str {
			t.Errorf("the request %q: %v", r.name, r.attributes)
		}
		for i, a := range list {
			if a.begin < r.begin || a.end > r.end || a.end < a.begin || a.attributes["rebound.attempt"].Int() != int64(i+1) {
				t.Errorf("%s: attempt %d from %d to %d, the request from %d to %d", r.name, i+1, a.begin, a.end, r.begin, r.end)
			}
			if a.failed != (a.attributes["error.type"].Str != "") {
				t.Errorf("%s: attempt %d: status and error differ: %v", r.name, i+1, a.attributes)
			}
			strategies[a.attributes["rebound.strategy"].Str] = true
		}
		answered := r.attributes["http.response.status_code"].Int() == 200 && !r.failed
		if answered && len(list) > 1 {
			recovered++
			if !slices.ContainsFunc(r.events, func(e string) bool { return strings.HasPrefix(e, "error_recovery_") }) || r.attributes["rebound.recovery"].Str == "" {
				t.Errorf("%s was recovered, and its events are %q", r.name, r.events)
			}
		}
		if answered && r.attributes["gen_ai.request.stream"].Raw == "true" && !r.attributes["gen_ai.response.finish_reasons"].Exists() && len(list) > 0 && r.attributes["rebound.recovery"].Str == "resend" {
			t.Errorf("%s has no finish reason: %v", r.name, r.attributes)
		}
	}
	for _, list := range attempts {
		t.Errorf("attempts of no request: %+v", list)
	}
	if len(requests) < 30 || recovered < 15 || len(strategies) < 8 {
		t.Errorf("%d requests, %d recovered, by %v", len(requests), recovered, strategies)
	}
	t.Logf("%d requests with %d spans, %d recovered by %d strategies", len(requests), len(s.spans), recovered, len(strategies))
}

// address is one on which nobody listens.
func address(t *testing.T) string {
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// start runs the collector until stop, or the test's end.
func start(t *testing.T, program, config string, ports map[string]string) (stop func()) {
	file := filepath.Join(t.TempDir(), "collector.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "--config", "file:"+file)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the collector: %v\n%s", err, said.String())
			}
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
			t.Errorf("the collector does not stop:\n%s", said.String())
		}
	})
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, port := range ports {
		for {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", port)
			if err == nil {
				c.Close()
				break
			}
			select {
			case err := <-ended:
				ended <- err
				t.Fatalf("the collector ended: %v\n%s", err, said.String())
			case <-ctx.Done():
				t.Fatalf("the collector does not listen on %s", port)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return stop
}
