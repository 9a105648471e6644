package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tidwall/gjson"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/rebound-llm/rebound/recovery"
)

// meanings are what the fields of events say, in the order of the page.
var meanings = [...][2]string{
	{"id", "names the event: time in milliseconds, replica, number; not in log lines"},
	{"time", "UTC"}, {"level", "INFO or WARN"}, {"event", "the name"},
	{"request", "id of the request"}, {"session", "of the conversation, as in `X-Rebound-Session`"},
	{"key", "name of the gateway key"}, {"client", "`gone`: it left before its answer was complete"}, {"peer", "address of a client that was turned away, as this process sees it: that of a proxy in front; of IPv6 the network"},
	{"model", "as the client named it"}, {"target", "upstream/model"}, {"upstream_key", "label of the upstream's key; `client-…` is a hash of a client's own"},
	{"attempt", "how many attempts so far"}, {"count", "of `fallback_used`: requests; of one that was turned away: how many of this client, for this reason, since the last that the history has"}, {"fallback", "of `request_done`: a target of a later rank answered"}, {"class", "what went wrong"},
	{"rule", "which row of the table said so; of requests that were turned away, the error's code"},
	{"strategy", "this step"}, {"recovery", "all that was done, as in `X-Rebound-Recovery`"}, {"way", "how an answer is continued: `listen`, `fetch`, `prefill`, `replay` or `ask`"},
	{"status", "the upstream's; in `request_done` the client's, 499 if it left"},
	{"streamed", "the client asked for a stream"}, {"mode", "of the request: `act`, `annotate`, `observe` or `off`"},
	{"observed", "recorded only: it would have been done"},
	{"wait_ms", "the pause before the next attempt, or what the upstream asked for"}, {"until", "end of a cool-down or of an open breaker"},
	{"duration_ms", "of the request; in `error_recovery_attempt` of the attempt that failed"}, {"prepare_ms", "of `request_done`: from its arrival to the first attempt: what the gateway itself took"}, {"upstream_request", "the upstream's own id of the request, for its support"}, {"ttfb_ms", "until the first byte of the answer for the client"},
	{"cause", "a transport's error, or a reason, without secrets, at most 512 bytes"},
	{"retryable", "of a failed attempt: the same request may succeed at another time, or when the model is asked again"},
	{"flaw", "of an answer that was asked again: `no_call`, `bad_json`, `unknown_tool`, `missing_field`, `arguments`, `truncated`, `content`, `repetition`, `mark`, `unsaid`"}, {"usage", "tokens of the answer as reported: `input`, `output`, `cache_read`, `cache_write`, `reasoning`"}, {"cost", "tokens beyond it, the same parts"},
	{"finish", "why the model ended the answer: `stop`, `length`, `tool_call`, `content_filter`, or another word of the upstream's"},
	{"recovery_spent", "the part of `spent` that is beyond the answer"}, {"spent", "what the request, or the plan, cost, where `prices` are configured"},
	{"tiers", "of a compression: what was used"}, {"steps_compressed", "messages that were changed"},
	{"original_tokens", "before it"}, {"compressed_tokens", "after it"}, {"original_size", "bytes before it"}, {"compressed_size", "bytes after it"},
	{"repairs", "of an answer: step and tool"},
	{"tool", "of a tool's failure"}, {"category", "its kind"}, {"evidence", "the rule that decided, never the tool's text"}, {"confidence", "of that rule, or of a plan, 0 to 1"},
	{"loop", "kind of a repetition"}, {"repetitions", "how often"},
	{"progress", "the share of an agent's last 12 steps that brought something new, in percent; no share of the way to its goal"}, {"progress_recent", "the same of the last three"},
	{"stuck", "the last three brought less than 5 percent"}, {"task", "what the agent is at: `exploring` or `changing`"},
	{"about", "of a note: the category of the failure"}, {"strategies", "what it proposed"}, {"occurrence", "how often the same happened so far"}, {"held_out", "it was withheld, to measure what notes do"},
	{"withheld", "it was withheld, since notes were learned to be no help there"},
	{"band", "of a plan: `act`, `propose` or `escalate`"}, {"source", "of a plan: `planner`, or `heuristic` where that was of no use"}, {"steps", "of a plan: the tools of its steps; their arguments and the plan's sentences stand below `/rebound/plans` only"},
	{"estimated_iterations", "of a plan: how many calls it takes, as the planner estimates"}, {"fallback_chain", "of a plan: the strategies to try if it fails"}, {"percent", "of a plan: how far the work is, as the planner sees it"},
	{"attempts", "of `request_done` with more than one attempt: `target`, `upstream_key`, `class`, `strategy`, `parallel`, `start_ms` (after the request's arrival) `duration_ms` and `upstream_request` of each, at most 20"},
}

// TestObservabilityPage: docs/observability.md lists every event, field, metric and
// attribute of a span. -update writes it.
func TestObservabilityPage(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Events, metrics and traces\n\nGenerated from the code (`go test ./proxy/telemetry -run TestObservabilityPage -update`). " +
		"What to do about them is in [operations.md](operations.md).\n\n## Events\n\n| event | when |\n|---|---|\n")
	source, err := os.ReadFile("../../recovery/event.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Event\w+ +EventName = "(\w+)" *(?:// (.*))?\n`).FindAllSubmatch(source, -1) {
		if len(m[2]) == 0 {
			t.Errorf("%s has no words in recovery/event.go", m[1])
		}
		warn := ""
		if level(recovery.EventName(m[1])) > 0 {
			warn = " (WARN)"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s |\n", m[1], warn, m[2])
	}
	b.WriteString("\nEmpty fields are left out.\n\n| field | meaning |\n|---|---|\n")
	for _, m := range meanings {
		fmt.Fprintf(&b, "| `%s` | %s |\n", m[0], m[1])
	}
	b.WriteString("\n## Metrics\n\nFor Prometheus, at `/metrics`; Go's and the process's own are there, too.\n\n| metric | labels | what it is |\n|---|---|---|\n")
	for _, d := range described(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d[0], strings.ReplaceAll(d[2], ",", ", "), d[1])
	}
	fmt.Fprintf(&b, "\nFor OpenTelemetry: the histograms `%s`, `%s` (seconds) and `%s`, with `%s`, `%s`, `%s`, and `%s` or `%s`.\n", genDurationMetric, genFirstChunkMetric, genTokensMetric,
		genOperation, genProvider, genRequestModel, errorType, genTokenType)
	request, attempt := traceStory(t)
	fmt.Fprintf(&b, "\n## Spans\n\nA request is a server span, an attempt its child, a client span. Names of `gen_ai` and `error.type` are [OpenTelemetry's]"+
		"(https://github.com/open-telemetry/semantic-conventions-genai); `rebound.` and a field of the events is that field.\n\n"+
		"- Of an attempt: %s.\n- Of a request: %s.\n- Events of a request's span have the names of the events, and their fields after `rebound.`.\n", attempt, request)
	golden(t, "../../../docs/observability.md", b.Bytes())
}

// described are the metrics of a hub: name, help, labels.
func described(t *testing.T) (list [][3]string) {
	ch := make(chan *prometheus.Desc, 1000)
	ownMetrics().Describe(ch)
	close(ch)
	shape := regexp.MustCompile(`^Desc{fqName: "(.*)", help: "(.*?)"(?:, unit: ".*")?, constLabels: {(.*)}, variableLabels: {(.*)}}$`)
	for d := range ch {
		m := shape.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s is not read", d)
		}
		labels := m[4]
		for _, l := range strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' }) {
			name, _, _ := strings.Cut(l, "=")
			labels = strings.TrimPrefix(labels+","+name, ",")
		}
		list = append(list, [3]string{m[1], m[2], labels})
	}
	slices.SortFunc(list, func(a, b [3]string) int { return strings.Compare(a[0], b[0]) })
	if len(list) < 25 {
		t.Fatalf("%d metrics", len(list))
	}
	return list
}

// A request that breaks before anybody says how it ended leaves nothing behind, and
// its spans are sent.
func TestAbandonedTrace(t *testing.T) {
	seen := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(seen))
	h := newHub(t, Defaults(), &buffer{})
	h.tracing = newTracing(provider.Tracer("test"), h.metrics, 1, provider.Shutdown)
	end := h.Trace("r", genChat, "m", time.Now(), http.Header{})
	h.TraceAttempt("r", 1, recovery.Target{Model: "m"})
	end()
	end()
	h.tracing.requests.Range(func(request, _ any) bool { t.Errorf("%v is still kept", request); return true })
	if n := len(seen.GetSpans()); n != 2 {
		t.Errorf("%d spans were sent, want 2", n)
	}
}

// traceStory traces requests of all kinds and returns the names of the attributes of
// requests and of attempts.
func traceStory(t *testing.T) (request, attempt string) {
	seen := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(seen))
	h := newHub(t, Defaults(), &buffer{})
	h.tracing = newTracing(provider.Tracer("test"), h.metrics, 1, provider.Shutdown)
	failed := recovered()
	failed.Class, failed.Status, failed.Cause, failed.Rule, failed.Spent, failed.Key, failed.Client = recovery.Timeout, 504, "x", "r", 1, "k", "gone"
	failed.Usage.CacheWrite, failed.Usage.Reasoning = 1, 1
	failed.Attempts[1].Target.Key = "b"
	for _, ev := range append(story(), failed) {
		h.Trace(ev.Request, genChat, ev.Model, ev.Time, http.Header{})
		h.TraceAttempt(ev.Request, 1, ev.Target)
		h.Observe(ev)
		if ev.Name != recovery.EventRequestDone {
			done := failed
			done.Request = ev.Request
			h.Observe(done)
		}
	}
	h.tracing.requests.Range(func(request, _ any) bool { t.Errorf("%v is done and still kept", request); return true })
	keys := map[trace.SpanKind]map[string]bool{trace.SpanKindServer: {}, trace.SpanKindClient: {}}
	events := map[string]bool{}
	for _, s := range seen.GetSpans() {
		for _, a := range s.Attributes {
			keys[s.SpanKind][string(a.Key)] = true
		}
		for _, e := range s.Events {
			for _, a := range e.Attributes {
				events[string(a.Key)] = true
			}
		}
	}
	known := map[string]bool{}
	for _, m := range meanings {
		known[own+m[0]] = true
	}
	for key := range events {
		if name, _, _ := strings.Cut(strings.TrimPrefix(key, own), "."); !known[own+name] {
			t.Errorf("%s is not explained", key)
		}
	}
	list := func(of map[string]bool) string { return "`" + strings.Join(slices.Sorted(maps.Keys(of)), "`, `") + "`" }
	return list(keys[trace.SpanKindServer]), list(keys[trace.SpanKindClient])
}

// Every field that is rendered is explained, and nothing else.
func TestFieldsAreExplained(t *testing.T) {
	rendered := map[string]bool{"id": true}
	everything := recovered()
	everything.Key, everything.Session, everything.Client, everything.Class, everything.Rule, everything.Strategy, everything.Way = "k", "s", "gone", "c", "r", "s", "ask"
	everything.Wait, everything.Until, everything.Observed, everything.Cause, everything.Spent = time.Second, at, true, "x", 1
	for _, ev := range append(story(), everything) {
		gjson.ParseBytes(newRenderer().render(record(&ev))).ForEach(func(k, _ gjson.Result) bool { rendered[k.Str] = true; return true })
	}
	explained := map[string]bool{}
	for _, m := range meanings {
		explained[m[0]] = true
		if !rendered[m[0]] {
			t.Errorf("%s is explained and never rendered", m[0])
		}
	}
	for k := range rendered {
		if !explained[k] {
			t.Errorf("%s is rendered and not explained: say in meanings what it is", k)
		}
	}
}

// Without an endpoint nothing is traced.
func TestNoEndpoint(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	if h.Traces() {
		t.Error("it traces without a collector")
	}
	if err := h.Export(context.Background(), OTLPDefaults()); err != nil || h.Traces() {
		t.Errorf("without an endpoint: %v", err)
	}
}

// A request that begins no trace takes no memory for tracing.
func TestUntracedTakesNothing(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	provider := sdktrace.NewTracerProvider()
	h.tracing = newTracing(provider.Tracer("test"), h.metrics, 0, provider.Shutdown)
	header := http.Header{"Content-Type": {"application/json"}}
	ev := healthy()
	alone := func() { h.Observe(ev) }
	traced := func() {
		end := h.Trace(ev.Request, genChat, ev.Model, ev.Time, header)
		if h.TraceAttempt(ev.Request, 1, ev.Target) != nil {
			t.Error("it is traced")
		}
		h.Observe(ev)
		end()
	}
	traced()
	with := testing.AllocsPerRun(100, traced)
	h.tracing = nil
	if without := testing.AllocsPerRun(100, alone); with > without {
		t.Errorf("%v allocations with tracing on, %v without", with, without)
	}
}
