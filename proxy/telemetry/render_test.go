package telemetry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery"
)

// story is one event of each kind.
func story() []recovery.Event {
	target := recovery.Target{Upstream: "openai", Model: "gpt-5", Key: "main"}
	of := func(name recovery.EventName, change func(*recovery.Event)) recovery.Event {
		ev := recovery.Event{Name: name, Time: at, Origin: recovery.Origin{Request: "req_0123456789abcdef", Session: "s1", Model: "coder", Mode: recovery.ModeAct}, Target: target}
		change(&ev)
		return ev
	}
	rejected := healthy()
	rejected.Attempt, rejected.Attempts, rejected.Status, rejected.Target, rejected.Peer = 0, nil, 404, recovery.Target{}, "10.1.2.3"
	rejected.Usage, rejected.Duration, rejected.TTFB, rejected.Streamed = recovery.Usage{}, 300*time.Microsecond, 0, false
	return []recovery.Event{
		healthy(),
		of(recovery.EventRecoveryAttempt, func(ev *recovery.Event) {
			ev.Attempt, ev.Class, ev.Rule, ev.Status = 1, recovery.RateLimit, "rate_limit_status", 429
			ev.Strategy, ev.Wait, ev.Cause = "wait", 2500*time.Millisecond, "Incorrect API key provided: sk-proj-abcdefghijkl"
		}),
		of(recovery.EventRecoveryAttempt, func(ev *recovery.Event) {
			ev.Attempt, ev.Class, ev.Strategy, ev.Mode, ev.Observed = 1, recovery.Timeout, "resend", recovery.ModeObserve, true
		}),
		of(recovery.EventRecoveryAttempt, func(ev *recovery.Event) {
			ev.Attempt, ev.Class, ev.Flaw, ev.Strategy = 1, recovery.ModelOutputInvalid, recovery.FlawField, "reask"
		}),
		of(recovery.EventRecoverySuccess, func(ev *recovery.Event) { ev.Attempt, ev.Strategy = 2, "wait" }),
		of(recovery.EventRecoveryFailed, func(ev *recovery.Event) {
			ev.Attempt, ev.Class, ev.Status, ev.Cost = 6, recovery.Overloaded, 529, recovery.Usage{Input: 9000, Output: 12, Reasoning: 3, CacheWrite: 1}
		}),
		of(recovery.EventStreamResumed, func(ev *recovery.Event) { ev.Attempt, ev.Class, ev.Streamed = 2, recovery.StreamCut, true }),
		{Name: recovery.EventTargetCooled, Time: at, Target: target, Class: recovery.RateLimit, Until: at.Add(20 * time.Second), Wait: 20 * time.Second},
		of(recovery.EventFallbackUsed, func(ev *recovery.Event) { ev.Attempt, ev.Count, ev.Target.Upstream = 2, 1, "azure" }),
		of(recovery.EventRequestDone, func(ev *recovery.Event) {
			ev.Extra, ev.Spent = 0.25, 1.5
			ev.Attempt, ev.Status, ev.Fallback, ev.Upstream, ev.Prepared, ev.Duration = 1, 200, true, "req_upstream_1", 40*time.Millisecond, time.Second
		}),
		{Name: recovery.EventBreakerOpened, Time: at, Target: recovery.Target{Upstream: "openai", Model: "gpt-5"}, Until: at.Add(time.Minute)},
		{Name: recovery.EventBreakerClosed, Time: at, Target: recovery.Target{Upstream: "openai", Model: "gpt-5"}},
		recovered(),
		rejected,
		of(recovery.EventCompressed, func(ev *recovery.Event) {
			ev.Cause, ev.Compressed = "known", &recovery.Compression{Tiers: []string{"reread", "old_results"}, Steps: 12, Before: 120_000, After: 70_000, BytesBefore: 480_000, BytesAfter: 270_000}
		}),
		of(recovery.EventCallRepaired, func(ev *recovery.Event) { ev.Repairs = []recovery.Repair{{Rule: "fence", Tool: "read"}} }),
		of(recovery.EventToolFailure, func(ev *recovery.Event) {
			ev.Failure = &recovery.ToolFailure{Tool: "bash", Category: recovery.CommandNotFound, Rule: "shell-not-found", Confidence: 0.99, Line: "never shown"}
		}),
		of(recovery.EventLoop, func(ev *recovery.Event) {
			ev.Loop, ev.Progress = &recovery.Loop{Kind: recovery.LoopSameError, Count: 3}, &recovery.Progress{Steps: 6, Percent: 6, Stuck: true, Task: recovery.Exploring}
		}),
		of(recovery.EventGuidance, func(ev *recovery.Event) {
			ev.Advice = &recovery.Advice{Category: recovery.FileNotFound, Strategies: []string{"verify_path", "ask_user"}, Count: 2, HeldOut: true, Withheld: true}
		}),
		of(recovery.EventPlanMade, func(ev *recovery.Event) {
			ev.Plan = &recovery.Plan{Strategy: recovery.PlanAdjust, Steps: []recovery.PlanStep{{Tool: "read", Parameters: `{"never":"shown"}`}}, Iterations: 2,
				Fallbacks: []recovery.PlanStrategy{recovery.PlanEscalate}, Tool: "read", Confidence: 0.9, Band: recovery.BandAct, Source: recovery.PlanPlanner, Percent: 40, Reasoning: "never shown"}
			ev.Strategy, ev.Duration, ev.Cost = string(ev.Plan.Strategy), 700*time.Millisecond, recovery.Usage{Input: 2000, Output: 90}
		}),
		of(recovery.EventApproval, func(ev *recovery.Event) {
			ev.Plan = &recovery.Plan{Strategy: recovery.PlanOtherTool, Tool: "grep", Confidence: 0.6, Band: recovery.BandPropose, Source: recovery.PlanPlanner}
			ev.Strategy, ev.Cause = string(ev.Plan.Strategy), "waiting"
		}),
	}
}

// People and scripts read these lines: keys are only ever added.
func TestLogGolden(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			var out buffer
			cfg := Defaults()
			cfg.Format, cfg.Requests = format, true
			h := newHub(t, cfg, &out)
			for _, ev := range story() {
				h.Observe(ev)
			}
			closeHub(t, h)
			golden(t, "events."+format+".golden", []byte(out.String()))
		})
	}
}

// A field that is added to Event must be rendered.
func TestEveryFieldIsRendered(t *testing.T) {
	render := func(ev recovery.Event) string { return string(newRenderer().render(record(&ev))) }
	base := recovery.Event{Name: "x", Time: at}
	none := render(base)
	if want := `{"time":"2026-03-01T02:00:00.123456789Z","level":"INFO","event":"x"}` + "\n"; none != want {
		t.Errorf("zero fields are rendered: %s", none)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[recovery.Event]()) {
		if field.Anonymous || field.Name == "Others" {
			continue // it decides only whether the request is logged
		}
		ev := base
		v := reflect.ValueOf(&ev).Elem().FieldByIndex(field.Index)
		switch f := v.Addr().Interface().(type) {
		case *time.Time:
			*f = at.Add(time.Hour)
		case *time.Duration:
			*f = time.Second
		case *recovery.Target:
			f.Upstream = "u"
		case *recovery.Usage:
			f.Reasoning = 1
		case *[]recovery.Record:
			*f = make([]recovery.Record, 2)
		case **recovery.Compression:
			*f = &recovery.Compression{}
		case *[]recovery.Repair:
			*f = make([]recovery.Repair, 1)
		case **recovery.ToolFailure:
			*f = &recovery.ToolFailure{}
		case **recovery.Loop:
			*f = &recovery.Loop{}
		case **recovery.Progress:
			*f = &recovery.Progress{Steps: 1}
		case **recovery.Advice:
			*f = &recovery.Advice{Count: 1}
		case **recovery.Plan:
			*f = &recovery.Plan{}
		default:
			switch v.Kind() {
			case reflect.String:
				v.SetString("y")
			case reflect.Int:
				v.SetInt(1)
			case reflect.Float64:
				v.SetFloat(1)
			case reflect.Bool:
				v.SetBool(true)
			default:
				t.Fatalf("%s: no sample for %s", field.Name, v.Type())
			}
		}
		if render(ev) == none {
			t.Errorf("%s is not rendered", field.Name)
		}
	}
}

// The cause is what an upstream, or whoever answers in its place, wrote.
func TestHostileText(t *testing.T) {
	for name, hostile := range map[string]string{
		"lines":    "boom\r\n{\"level\":\"INFO\",\"event\":\"forged\"}\ndata: forged\n\nevent: forged",
		"controls": "\x00\x1b[2J\x1b]0;title\x07\x7f\u009b31m\u202egnp.exe\u2028\u2029\u200b",
		"invalid":  "\xff\xfe\xc3(\xed\xa0\x80",
		"huge":     strings.Repeat("x", 10<<20),
		"huge key": strings.Repeat("word ", 400) + "sk-" + strings.Repeat("a", 4096),
		"runes":    strings.Repeat("失敗", 5000),
		"html":     "<script>alert(1)</script>",
	} {
		t.Run(name, func(t *testing.T) {
			ev := recovered()
			ev.Name, ev.Cause, ev.Model, ev.Session, ev.Rule = recovery.EventName(hostile), hostile, hostile, hostile, hostile
			ev.Target.Key, ev.Attempts[0].Target.Model, ev.Client = hostile, hostile, hostile
			line := newRenderer().render(record(&ev))
			if len(line) > 8<<10 || bytes.Count(line, []byte("\n")) != 1 || !utf8.Valid(line) {
				t.Errorf("%d bytes, %d lines", len(line), bytes.Count(line, []byte("\n")))
			}
			var got map[string]any
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatal(err)
			}
			for k, v := range got {
				s, ok := v.(string)
				if !ok {
					continue
				}
				if limit := map[bool]int{true: maxCause, false: 2*maxName + 1}[k == "cause"]; len(s) > limit {
					t.Errorf("%s has %d bytes", k, len(s))
				}
				for _, c := range s {
					if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c >= 0x200b && c <= 0x202e && c != '…' {
						t.Errorf("%s has %U", k, c)
					}
				}
			}
			if strings.Contains(string(line), "aaaaaaaa") {
				t.Error("half a key is left")
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\nb\x00ü失", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 3 || limit > 1<<16 {
			return
		}
		got := clean(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("clean(%q, %d) = %q", s, limit, got)
		}
		if clean(got, limit) != got {
			t.Errorf("cleaning %q again changes it", got)
		}
		if c := cause(s); len(c) > maxCause {
			t.Errorf("%d bytes", len(c))
		}
	})
}

// What an upstream says instead of a reason is not repeated.
func TestFinish(t *testing.T) {
	for in, want := range map[recovery.Finish]string{"": "", recovery.FinishStop: "stop", recovery.FinishCalls: "tool_call", recovery.FinishFilter: "content_filter",
		"max_time": "max_time", "the answer's text": labelOther, recovery.Finish(strings.Repeat("a", 33)): labelOther, "<b>": labelOther} {
		if got := finish(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
