package classify_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// TestRetryHintCorpus: each retry hint of the corpus yields its wait.
func TestRetryHintCorpus(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	f, err := os.Open("testdata/retry_hints.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checked := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var h struct {
			Provider, Where, Name, Example string
			Wait                           *float64 `json:"wait_s"`
		}
		if err := json.Unmarshal(sc.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		if h.Wait == nil || h.Example == "" {
			continue
		}
		ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: 429, Header: http.Header{}, Now: noon}
		quoted, _ := json.Marshal(h.Example)
		switch {
		case h.Where == "header":
			ev.Header.Set(h.Name, h.Example)
			ev.Body = []byte(`{"error":{"message":"Rate limit exceeded"}}`)
		case h.Where == "body text":
			ev.Body = fmt.Appendf(nil, `{"error":{"message":%s}}`, quoted)
		case strings.Contains(h.Name, "retryDelay"):
			ev.Body = fmt.Appendf(nil, `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":%s}]}}]`, quoted)
		default:
			ev.Body = fmt.Appendf(nil, `{"error":"Model x is currently loading",%q:%s}`, h.Name, h.Example)
			ev.Status = 503
		}
		d := tb.Classify(ev)
		if !d.Signal.HasRetryAfter || math.Abs(d.Signal.RetryAfter.Seconds()-*h.Wait) > 1e-6 {
			t.Errorf("%s %s %q: got %v %v, want %v s", h.Provider, h.Name, h.Example, d.Signal.HasRetryAfter, d.Signal.RetryAfter, *h.Wait)
		}
		checked++
	}
	if checked < 20 {
		t.Fatalf("only %d hints checked", checked)
	}
}

func TestRetryHints(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	const limited = `{"error":{"message":"Rate limit exceeded"}}`
	hour := noon.Add(time.Hour)
	for _, c := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		want   time.Duration // -1: no hint
	}{
		{"nothing", 429, nil, limited, -1},
		{"zero", 429, map[string]string{"Retry-After": "0"}, limited, 0},
		{"fraction", 429, map[string]string{"Retry-After": "1.5"}, limited, 1500 * time.Millisecond},
		{"milliseconds win", 429, map[string]string{"Retry-After": "2", "Retry-After-Ms": "1250"}, limited, 1250 * time.Millisecond},
		{"azure milliseconds", 429, map[string]string{"x-ms-retry-after-ms": "700"}, limited, 700 * time.Millisecond},
		{"milliseconds rounded down to zero", 429, map[string]string{"Retry-After": "1", "Retry-After-Ms": "0"}, limited, time.Second},
		{"advice of a page", 502, nil, "<html><title>502 Server Error</title><h1>Error: Server Error</h1><h2>The server encountered a temporary error and could not complete your request.<p>Please try again in 30 seconds.</h2></html>", -1},
		{"page of a limit", 429, nil, "<html><h1>Too many requests</h1><p>Please try again in 30 seconds.</html>", 30 * time.Second},
		{"http date", 503, map[string]string{"Retry-After": hour.Format(http.TimeFormat)}, "", time.Hour},
		{"past date", 503, map[string]string{"Retry-After": noon.Add(-time.Hour).Format(http.TimeFormat)}, "", 0},
		{"absurd", 429, map[string]string{"Retry-After": "999999999999999999999"}, limited, -1},
		{"negative", 429, map[string]string{"Retry-After": "-5"}, limited, -1},
		{"not a number", 429, map[string]string{"Retry-After": "NaN"}, limited, -1},
		{"explicit beats text", 429, map[string]string{"Retry-After": "300"}, `{"error":{"message":"Rate limit. Try again in 9s."}}`, 300 * time.Second},
		{"used window", 429, map[string]string{"x-ratelimit-remaining-requests": "14", "x-ratelimit-reset-requests": "6m0s",
			"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1.57s"}, limited, 1570 * time.Millisecond},
		{"all used windows", 429, map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "8s",
			"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2s"}, limited, 8 * time.Second},
		{"open windows of a server error", 500, map[string]string{"x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "2s"}, "", -1},
		{"rfc 3339", 429, map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": hour.Format(time.RFC3339)}, limited, time.Hour},
		{"epoch seconds", 429, map[string]string{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": fmt.Sprint(hour.Unix())}, limited, time.Hour},
		{"epoch milliseconds", 429, map[string]string{"X-RateLimit-Reset": fmt.Sprint(hour.UnixMilli())}, limited, time.Hour},
		{"headers in the body", 429, nil, fmt.Sprintf(`{"error":{"message":"Rate limit exceeded","metadata":{"headers":{"X-RateLimit-Remaining":"0`+
			`","X-RateLimit-Reset":"%d"}}}}`, hour.UnixMilli()), time.Hour},
		{"text is finer than the field", 429, nil, `{"error":{"message":"Please retry in 36.43s.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"36s"}]}}`, 36430 * time.Millisecond},
		{"resets_in_seconds", 429, nil, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_in_seconds":3600}}`, time.Hour},
		{"resets_at", 429, nil, fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":%d}}`, hour.Unix()), time.Hour},
		{"words", 429, nil, `{"error":{"message":"Weekly usage limit reached. Resets in 6hr 29min."}}`, 6*time.Hour + 29*time.Minute},
		{"chinese", 429, nil, `{"error":{"message":"请求过于频繁，请在 30 秒后重试"}}`, 30 * time.Second},
		{"chinese without a lead", 429, nil, `{"error":{"message":"请求过于频繁, 2分钟后再试"}}`, 2 * time.Minute},
		{"wait after a rate", 429, nil, `{"error":{"message":"Limit of 20 requests per 60 seconds. Please wait 7 seconds."}}`, 7 * time.Second},
		{"appended to a refusal", 400, nil, `{"error":{"message":"Missing field x in the assistant message (reset after 30s)"}}`, -1},
		{"appended to a rate limit", 429, nil, `{"error":{"message":"[x] [429]: too many requests (reset after 30s)"}}`, 30 * time.Second},
		{"iso instant in a text", 429, nil, `{"error":{"message":"usage limit reached; resets at 2026-03-01T13:00:00Z"}}`, time.Hour},
		{"wall clock without a zone", 429, nil, `{"error":{"message":"Your limit will reset at 2026-03-06 22:19:54"}}`, -1},
	} {
		ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: c.status, Header: http.Header{}, Body: []byte(c.body), Now: noon}
		for k, v := range c.header {
			ev.Header.Set(k, v)
		}
		s := tb.Classify(ev).Signal
		if c.want < 0 {
			if s.HasRetryAfter {
				t.Errorf("%s: got %v, want no hint", c.name, s.RetryAfter)
			}
			continue
		}
		if diff := s.RetryAfter - c.want; !s.HasRetryAfter || diff > time.Millisecond || diff < -time.Millisecond {
			t.Errorf("%s: got %v %v, want %v", c.name, s.HasRetryAfter, s.RetryAfter, c.want)
		}
	}
}
