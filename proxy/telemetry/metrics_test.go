package telemetry

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// Dashboards and alerts depend on names, labels and help: a change of this file
// breaks them and belongs in the change log.
func TestMetricsGolden(t *testing.T) {
	families, err := ownMetrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		var list []string
		for l := range labels {
			list = append(list, l)
		}
		slices.Sort(list)
		fmt.Fprintf(&b, "%s{%s} %s\n    %s\n", f.GetName(), strings.Join(list, ","), f.GetType(), f.GetHelp())
	}
	golden(t, "metrics.golden", b.Bytes())
}

func TestMetricsLint(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	problems, err := promlint.New(strings.NewReader(scrape(t, h))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "rebound_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if !strings.Contains(scrape(t, h), "go_goroutines") || !strings.Contains(scrape(t, h), `version="1.2.3"`) {
		t.Error("the process is not described")
	}
}

// TestDeployed: the dashboard and the alerts ask for metrics and labels that exist.
func TestDeployed(t *testing.T) {
	labels := map[string]string{}
	for _, d := range described(t) {
		name, list := d[0], d[2]
		if strings.HasSuffix(name, "_seconds") { // a histogram
			name, list = name+"_bucket", list+",le"
		}
		labels[name] = "," + list + ",job,instance,"
	}
	shown := map[string]bool{}
	metric := regexp.MustCompile(`(rebound_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`(\w+)\s*[=!]~?\s*\\?"`)
	for _, name := range []string{"grafana.json", "alerts.yaml", "alerts.test.yaml"} {
		text, err := os.ReadFile("../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		asked := metric.FindAllStringSubmatch(string(text), -1)
		for _, m := range asked {
			known, ok := labels[m[1]]
			if !ok {
				t.Errorf("%s: there is no metric %s", name, m[1])
			}
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(known, ","+l[1]+",") {
					t.Errorf("%s: %s has no label %s", name, m[1], l[1])
				}
			}
		}
		if len(asked) < 8 {
			t.Errorf("%s asks for %d metrics", name, len(asked))
		}
		for _, m := range asked {
			shown[m[1]] = true
		}
	}
	// The documentation lists the alerts, all of them and no others.
	alerts, err := os.ReadFile("../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var raised, listed []string
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(alerts), -1) {
		raised = append(raised, m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Rebound\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	if !slices.Equal(raised, listed) {
		t.Errorf("the alerts are %v, operations.md lists %v", raised, listed)
	}
	// What has no place there is a detail of what has.
	details := []string{"rebound_build_info", "rebound_replicas", "rebound_answer_repairs_total", "rebound_billed_equivalent_tokens_total", "rebound_compressed_tokens_total",
		"rebound_context_truncated_total", "rebound_guidance_total", "rebound_guidance_outcomes_total", "rebound_loops_total",
		"rebound_key_refused_total", "rebound_key_requests_total", "rebound_key_tokens_total"}
	for name := range labels {
		if !shown[name] && !slices.Contains(details, name) {
			t.Errorf("neither deploy/grafana.json nor deploy/alerts.yaml asks for %s: show it there, or list it under details above", name)
		}
	}
}

func TestCount(t *testing.T) {
	event := func(name recovery.EventName, change func(*recovery.Event)) recovery.Event {
		ev := recovery.Event{Name: name, Time: at, Origin: recovery.Origin{Model: "coder"}, Target: recovery.Target{Upstream: "openai", Model: "gpt-5", Key: "main"}}
		if change != nil {
			change(&ev)
		}
		return ev
	}
	done := func(change func(*recovery.Event)) recovery.Event {
		ev := healthy()
		change(&ev)
		return ev
	}
	for _, tt := range []struct {
		name string
		ev   recovery.Event
		want []string // lines of the exposition that were 0 or absent before
	}{
		{"healthy", healthy(), []string{
			`rebound_requests_total{format="other",model="coder",outcome="ok",status_class="2xx"} 1`,
			`rebound_request_duration_seconds_count{model="coder"} 1`,
			`rebound_request_duration_seconds_bucket{model="coder",le="5"} 1`,
			`rebound_ttfb_seconds_bucket{model="coder",le="0.5"} 1`,
			`rebound_attempts_total{class="ok",upstream="openai"} 1`,
			`rebound_tokens_total{kind="input",upstream="openai"} 1200`,
			`rebound_tokens_total{kind="cache_read",upstream="openai"} 1024`,
		}},
		{"recovered", recovered(), []string{
			`rebound_requests_total{format="other",model="coder",outcome="recovered",status_class="2xx"} 1`,
			`rebound_attempts_total{class="timeout",upstream="openai"} 1`,
			`rebound_attempts_total{class="ok",upstream="azure"} 1`,
			`rebound_extra_tokens_total{kind="input"} 1200`,
			`rebound_tokens_total{kind="output",upstream="azure"} 340`,
		}},
		{"stopped", done(func(ev *recovery.Event) {
			ev.Attempt, ev.Attempts, ev.Target, ev.Recovery, ev.Usage = 0, nil, recovery.Target{}, "session_stopped", recovery.Usage{}
		}), []string{
			`rebound_requests_total{format="other",model="coder",outcome="rejected",status_class="2xx"} 1`,
		}},
		{"failed", done(func(ev *recovery.Event) {
			ev.Status, ev.Class, ev.Attempts[0].Class = 504, recovery.Timeout, recovery.Timeout
		}), []string{
			`rebound_requests_total{format="other",model="coder",outcome="failed",status_class="5xx"} 1`,
			`rebound_attempts_total{class="timeout",upstream="openai"} 1`,
		}},
		{"cut after 200", done(func(ev *recovery.Event) { ev.Class = recovery.StreamCut }), []string{
			`rebound_requests_total{format="other",model="coder",outcome="failed",status_class="2xx"} 1`,
		}},
		{"without a list of attempts", done(func(ev *recovery.Event) { ev.Attempts = nil }), []string{
			`rebound_attempts_total{class="ok",upstream="openai"} 1`,
		}},
		{"client left", done(func(ev *recovery.Event) { ev.Status = 499 }), []string{
			`rebound_requests_total{format="other",model="coder",outcome="canceled",status_class="4xx"} 1`,
			`rebound_attempts_total{class="canceled",upstream="openai"} 1`,
		}},
		{"rejected", done(func(ev *recovery.Event) {
			ev.Status, ev.Attempt, ev.Attempts, ev.Model = 404, 0, nil, "nonsense"
		}), []string{
			`rebound_requests_total{format="other",model="other",outcome="rejected",status_class="4xx"} 1`,
		}},
		{"not streamed", done(func(ev *recovery.Event) { ev.Streamed = false }), []string{
			`rebound_ttfb_seconds_count{model="coder"} 0`,
		}},
		{"no status", done(func(ev *recovery.Event) { ev.Status, ev.Class = 0, "nonsense" }), []string{
			`rebound_requests_total{format="other",model="coder",outcome="failed",status_class="none"} 1`,
		}},
		{"unknown class and upstream", done(func(ev *recovery.Event) {
			ev.Attempts = []recovery.Record{{Target: recovery.Target{Upstream: "x"}, Class: "y"}}
		}), []string{`rebound_attempts_total{class="other",upstream="other"} 1`}},
		{"absurd usage", done(func(ev *recovery.Event) {
			ev.Usage = recovery.Usage{Input: -5, Output: math.MaxInt}
			ev.Cost = recovery.Usage{Input: math.MinInt}
		}), []string{
			`rebound_tokens_total{kind="input",upstream="openai"} 0`,
			`rebound_tokens_total{kind="output",upstream="openai"} 1.073741824e+09`,
		}},
		{"attempt", event(recovery.EventRecoveryAttempt, func(ev *recovery.Event) { ev.Strategy = "move" }),
			[]string{`rebound_recoveries_total{result="attempted",strategy="move"} 1`}},
		{"parallel", event(recovery.EventRecoveryAttempt, func(ev *recovery.Event) { ev.Strategy = "parallel" }),
			[]string{`rebound_recoveries_total{result="attempted",strategy="parallel"} 1`}},
		{"observed", event(recovery.EventRecoveryAttempt, func(ev *recovery.Event) { ev.Strategy, ev.Observed = "wait", true }),
			[]string{`rebound_recoveries_total{result="observed",strategy="wait"} 1`}},
		{"success", event(recovery.EventRecoverySuccess, func(ev *recovery.Event) { ev.Strategy = "nonsense" }),
			[]string{`rebound_recoveries_total{result="success",strategy="other"} 1`}},
		{"nothing helped", event(recovery.EventRecoveryFailed, nil),
			[]string{`rebound_recoveries_total{result="failed",strategy="none"} 1`}},
		{"fallback", event(recovery.EventFallbackUsed, func(ev *recovery.Event) { ev.Target.Upstream = "azure" }),
			[]string{`rebound_fallback_total{model="coder",upstream="azure"} 1`}},
		{"cooled", event(recovery.EventTargetCooled, func(ev *recovery.Event) { ev.Class = recovery.RateLimit }),
			[]string{`rebound_target_cooldowns_total{class="rate_limit",key="main",upstream="openai"} 1`}},
		{"cooled client", event(recovery.EventTargetCooled, func(ev *recovery.Event) {
			ev.Class, ev.Target.Key = recovery.RateLimit, "client-0011223344556677"
		}), []string{`rebound_target_cooldowns_total{class="rate_limit",key="client",upstream="openai"} 1`}},
		{"cooled without key", event(recovery.EventTargetCooled, func(ev *recovery.Event) { ev.Class, ev.Target.Key = "nonsense", "" }),
			[]string{`rebound_target_cooldowns_total{class="other",key="none",upstream="openai"} 1`}},
		{"compressed", event(recovery.EventCompressed, func(ev *recovery.Event) {
			ev.Cause, ev.Compressed = string(recovery.ContextLengthExceeded), &recovery.Compression{Before: 100, After: 60}
		}), []string{`rebound_compressions_total{reason="overflow"} 1`, `rebound_compressed_tokens_total{when="before"} 100`, `rebound_compressed_tokens_total{when="after"} 60`}},
		{"compressed before", event(recovery.EventCompressed, func(ev *recovery.Event) { ev.Compressed = &recovery.Compression{} }),
			[]string{`rebound_compressions_total{reason="known"} 1`}},
		{"observed compression", event(recovery.EventCompressed, func(ev *recovery.Event) { ev.Compressed, ev.Observed = &recovery.Compression{}, true }),
			[]string{`rebound_compressions_total{reason="observed"} 1`}},
		{"truncated", event(recovery.EventTruncated, nil), []string{`rebound_context_truncated_total 1`}},
		{"repaired", event(recovery.EventCallRepaired, func(ev *recovery.Event) { ev.Repairs = []recovery.Repair{{Rule: "fence"}} }),
			[]string{`rebound_answer_repairs_total{rule="fence"} 1`}},
		{"tool failure", event(recovery.EventToolFailure, func(ev *recovery.Event) { ev.Failure = &recovery.ToolFailure{Category: recovery.DiskFull} }),
			[]string{`rebound_tool_failures_total{category="disk_full"} 1`}},
		{"loop", event(recovery.EventLoop, func(ev *recovery.Event) { ev.Loop = &recovery.Loop{Kind: recovery.LoopMonologue} }),
			[]string{`rebound_loops_total{kind="monologue"} 1`}},
		{"guidance", event(recovery.EventGuidance, func(ev *recovery.Event) { ev.Advice = &recovery.Advice{Category: recovery.DiskFull} }),
			[]string{`rebound_guidance_total{about="disk_full",result="injected"} 1`}},
		{"guidance held out", event(recovery.EventGuidance, func(ev *recovery.Event) {
			ev.Advice = &recovery.Advice{Loop: recovery.LoopSameError, HeldOut: true}
		}), []string{`rebound_guidance_total{about="loop_same_error",result="held_out"} 1`}},
		{"what followed", event(recovery.EventGuidanceOutcome, func(ev *recovery.Event) { ev.Advice, ev.Cause = &recovery.Advice{}, "repeated" }),
			[]string{`rebound_guidance_outcomes_total{arm="guided",result="repeated"} 1`}},
		{"session breaker", event(recovery.EventBreakerOpened, func(ev *recovery.Event) { ev.Failure, ev.Session = &recovery.ToolFailure{}, "s" }),
			[]string{`rebound_session_breakers_total{state="opened"} 1`}},
		{"session breaker closed", event(recovery.EventBreakerClosed, func(ev *recovery.Event) { ev.Failure, ev.Session = &recovery.ToolFailure{}, "s" }),
			[]string{`rebound_session_breakers_total{state="closed"} 1`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHub(t, Defaults(), &buffer{})
			before := scrape(t, h)
			h.Observe(tt.ev)
			got := scrape(t, h)
			for _, want := range tt.want {
				if !strings.HasSuffix(want, " 0") && strings.Contains(before, want+"\n") {
					t.Errorf("%s was there before", want)
				}
				if !strings.Contains(got, want+"\n") {
					t.Errorf("%s is missing", want)
				}
			}
		})
	}
}

// Without configuration the first models that answer have labels of their own;
// those that do not answer, and odd names, have not.
func TestModelsThatAnswerHaveLabels(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	done := func(model string, status int) {
		ev := recovery.Event{Name: recovery.EventRequestDone, Origin: recovery.Origin{Model: model}, Status: status, Attempt: 1}
		if status >= 400 {
			ev.Class = recovery.ModelNotFound
		}
		h.Observe(ev)
	}
	done("made-up", 404)
	done("two words", 200)
	done(strings.Repeat("x", maxModelName+1), 200)
	for i := range maxMet + 5 {
		done(fmt.Sprintf("m%d", i), 200)
		done(fmt.Sprintf("m%d", i), 200)
	}
	got := scrape(t, h)
	for i := range maxMet + 5 {
		series := fmt.Sprintf(`rebound_requests_total{format="other",model="m%d",outcome="ok",status_class="2xx"} 2`, i)
		if strings.Contains(got, series) != (i < maxMet) {
			t.Errorf("model %d has a label of its own: %t", i, i >= maxMet)
		}
	}
	for _, name := range []string{"made-up", "two words", "xxxx"} {
		if strings.Contains(got, `model="`+name) {
			t.Errorf("%q has a label", name)
		}
	}
}

// No client and no upstream can create series.
func TestLabelsAreBounded(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	observe := func(i int) {
		odd := fmt.Sprintf("x%d", i)
		target := recovery.Target{Upstream: odd, Model: odd, Key: odd}
		for _, name := range append(events(), recovery.EventName(odd)) {
			h.Observe(recovery.Event{Name: name, Origin: recovery.Origin{Model: odd, Session: odd, Request: odd}, Target: target, Class: recovery.Class(odd), Strategy: odd, Status: i, Rule: odd,
				Attempt: 1, Ending: recovery.Ending{Client: odd, Peer: odd, Recovery: odd, Attempts: []recovery.Record{{Target: target, Class: recovery.Class(odd), Strategy: odd}}}, Until: time.Now().Add(time.Hour)})
		}
	}
	ours := func() int { return len(regexp.MustCompile(`(?m)^rebound_`).FindAllString(scrape(t, h), -1)) }
	for i := range 600 { // every status once
		observe(i)
	}
	n := ours()
	for i := 600; i < 3000; i++ {
		observe(i)
	}
	if got := ours(); got != n {
		t.Errorf("%d series became %d", n, got)
	}
}

func events() []recovery.EventName {
	return []recovery.EventName{recovery.EventRecoveryAttempt, recovery.EventRecoverySuccess, recovery.EventRecoveryFailed, recovery.EventStreamResumed,
		recovery.EventTargetCooled, recovery.EventFallbackUsed, recovery.EventBreakerOpened, recovery.EventBreakerClosed, recovery.EventRequestDone}
}

// The gauge is what the board says, under names that are configured.
func TestBreakerGauge(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	is := func(model string, n int) {
		t.Helper()
		if want := fmt.Sprintf("rebound_breaker_open{model=%q,upstream=\"openai\"} %d\n", model, n); !strings.Contains(scrape(t, h), want) {
			t.Errorf("want %s", want)
		}
	}
	is("gpt-5", 0)
	open := []recovery.Target{{Upstream: "openai", Model: "gpt-5"}, {Upstream: "openai", Model: "unknown-1"}, {Upstream: "openai", Model: "unknown-2"}, {Upstream: "gone", Model: "m"}}
	h.SetOpen(func() []recovery.Target { return open })
	is("gpt-5", 1)
	is("gpt-5-mini", 0)
	is("other", 2)
	if got := scrape(t, h); !strings.Contains(got, `rebound_breaker_open{model="other",upstream="other"} 1`) {
		t.Error("an upstream that is gone is not counted as another")
	}
	open = nil
	is("gpt-5", 0)
}

// An outage with a fallback is told when it begins and once a minute, however many requests there are; each
// counts in the metric.
func TestFallbackTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		h := newHub(t, Defaults(), &out)
		for range 150 {
			h.Observe(recovery.Event{Name: recovery.EventFallbackUsed, Time: time.Now(), Origin: recovery.Origin{Request: "r", Model: "coder"}, Target: recovery.Target{Upstream: "azure", Model: "gpt-5"}})
			time.Sleep(time.Second)
		}
		time.Sleep(2 * fallbackEvery)
		h.Observe(recovery.Event{Name: recovery.EventFallbackUsed, Time: time.Now(), Origin: recovery.Origin{Model: "coder"}, Target: recovery.Target{Upstream: "azure", Model: "gpt-5"}})
		if got := scrape(t, h); !strings.Contains(got, `rebound_fallback_total{model="coder",upstream="azure"} 151`) {
			t.Errorf("not every request is counted:\n%s", got)
		}
		closeHub(t, h)
		sum, lines := 0, strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, line := range lines {
			sum += int(gjson.Get(line, "count").Int())
			if gjson.Get(line, "event").Str != "fallback_used" || gjson.Get(line, "request").Exists() || gjson.Get(line, "target").Str != "azure/gpt-5" {
				t.Errorf("told: %s", line)
			}
		}
		if len(lines) != 5 || sum != 151 { // the first, two minutes, the rest, and one anew
			t.Errorf("%d lines tell of %d requests", len(lines), sum)
		}
	})
}

func TestReloadRemovesSeries(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	h.Observe(recovered())
	n := labels()
	delete(n.Models, "coder")
	delete(n.Upstreams, "azure")
	h.Reload(Defaults(), n)
	got := scrape(t, h)
	for _, gone := range []string{`"coder"`, `"azure"`, `"gpt-5-eu"`} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is still there", gone)
		}
	}
	if !strings.Contains(got, `rebound_attempts_total{class="timeout",upstream="openai"} 1`) {
		t.Error("a counter that stays lost its count")
	}
	h.Observe(healthy())
	if !strings.Contains(scrape(t, h), `rebound_requests_total{format="other",model="coder",outcome="ok",status_class="2xx"} 1`) {
		t.Error("a model that is gone does not begin anew as one that nobody configured")
	}
}

// Series that are there from the start have a value for each label, so that rates see their first request.
func TestShownFromTheStart(t *testing.T) {
	got := scrape(t, newHub(t, Defaults(), &buffer{}))
	for _, want := range []string{
		`rebound_requests_total{format="chat",model="coder",outcome="ok",status_class="2xx"} 0`,
		`rebound_requests_total{format="messages",model="other",outcome="failed",status_class="5xx"} 0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "rebound_") && strings.Contains(line, `=""`) && !strings.Contains(line, "_info") {
			t.Errorf("a label has no value: %s", line)
		}
	}
}

func TestInFlight(t *testing.T) {
	h := newHub(t, Defaults(), &buffer{})
	h.Begin()
	h.Begin()
	h.End()
	if !strings.Contains(scrape(t, h), "rebound_in_flight 1\n") {
		t.Error("one request is under way")
	}
}
