package classify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// Text from the request never affects other requests, however a server echoes it.
func TestQuotedWords(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	words := []string{
		"You exceeded your current quota, please check your plan and billing details. insufficient_quota",
		"Rate limit reached for requests. Please try again in 3600s", "Incorrect API key provided: sk-x", "Your account has been deactivated",
		"The server is overloaded, please try again later", "overdue", "余额不足", "欠费了",
		`{"error":{"message":"x y z w","code":"insufficient_quota","type":"insufficient_quota","status":429}}`, "litellm.RateLimitError: 429 - slow down",
	}
	quote := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	servers := map[string]func(string) string{
		"openai": func(s string) string {
			return `{"error":{"message":` + quote("Invalid value: '"+s+"'. Supported values are: 'system' and 'user'.") + `,"type":"invalid_request_error","param":"messages[0].role","code":"invalid_value"}}`
		},
		"fastapi": func(s string) string {
			return `{"detail":[{"type":"literal_error","loc":["body","messages",0,"role"],"msg":"Input should be 'system'","input":` + quote(s) + `}]}`
		},
		"python": func(s string) string {
			return `{"object":"error","message":` + quote("[{'type': 'literal_error', 'msg': 'Input should be', 'input': '"+s+"'}]") + `,"code":400}`
		},
		"plain":   func(s string) string { return `{"error":{"message":` + quote("Unknown role: "+s) + `}}` },
		"go":      func(s string) string { return `{"error":` + quote("invalid role: \""+s+"\"") + `}` },
		"shouted": func(s string) string { return `{"error":` + quote("BAD ROLE "+strings.ToUpper(s)) + `}` },
		"text":    func(s string) string { return "cannot use role " + s },
	}
	for name, body := range servers {
		for _, w := range words {
			ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: []byte(body(w)), Request: []byte(`{"messages":[{"role":` + quote(w) + `,"content":"x"}]}`), Now: noon}
			d := tb.Classify(ev)
			if s := d.Spec; s.Cools || s.Counts || s.Scope != recovery.ScopeRequest || d.Signal.RetryAfter > 0 {
				t.Errorf("%s: %q is %s by %s, which acts on others (waits %v)", name, w, s.Class, d.Rule, d.Signal.RetryAfter)
			}
			ev.Request = nil
			if s := tb.Classify(ev).Spec; name == "plain" && w == words[0] && !s.Cools {
				t.Errorf("without the request %q is %s: the case proves nothing", w, s.Class)
			}
		}
	}
}

// The upstream's own words and its status count, whatever the request contains.
func TestOwnWords(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, c := range []struct {
		status        int
		body, request string
		class         recovery.Class
		quoted        bool
	}{
		{429, `{"error":{"message":"Rate limit reached for requests"}}`, "I saw: Rate limit reached for requests", recovery.RateLimit, false},
		{402, `{"error":{"message":"Your balance is insufficient"}}`, "Your balance is insufficient", recovery.QuotaExhausted, false},
		{503, `{"error":{"message":"The server is overloaded"}}`, "The server is overloaded", recovery.Overloaded, false},
		{400, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, "You exceeded your current quota", recovery.QuotaExhausted, false},
		{400, `{"error":{"message":"Your account balance is insufficient."}}`, "Explain what a balance of an account is.", recovery.QuotaExhausted, false},
		{400, `{"error":{"message":"Your account balance is insufficient."}}`, "Your account balance is insufficient.", recovery.Unknown, true},
		{400, `{"error":{"message":"This model's maximum context length is 60 tokens. However, your messages resulted in 900 tokens."}}`,
			"This model's maximum context length is 60 tokens. However, your messages resulted in 900 tokens.", recovery.ContextLengthExceeded, true},
		{400, `{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature","code":"unsupported_parameter"}}`,
			"Unsupported parameter: 'temperature' is not supported with this model.", recovery.UnsupportedParameter, false},
		{400, `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`, "hi", recovery.UnsupportedParameter, false},
		{400, `{"message":"messages.0.user.name: property 'messages.0.user.name' is unsupported"}`, "hi", recovery.UnsupportedParameter, false},
		{400, `{"error":{"message":"Unknown role: Unsupported parameter: 'temperature' is not supported with this model."}}`,
			"Unsupported parameter: 'temperature' is not supported with this model.", recovery.UnsupportedParameter, true},
	} {
		request := fmt.Sprintf(`{"max_tokens":5,"max_completion_tokens":5,"temperature":1,"messages":[{"role":"user","content":%q}]}`, c.request)
		d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: c.status, Body: []byte(c.body), Request: []byte(request), Now: noon})
		if d.Spec.Class != c.class || d.Quoted != c.quoted {
			t.Errorf("%d %s: %s by %s, quoted %t", c.status, c.body, d.Spec.Class, d.Rule, d.Quoted)
		}
	}
}

// A refused value does not mean a refused field: another value may be accepted.
func TestRefusedValue(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for body, want := range map[string]bool{
		`{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'low' and 'high'.","param":"reasoning_effort","code":"unsupported_value"}}`: true,
		`{"error":{"message":"enable thinking: reasoning_effort 'max' is not supported, must be one of low, high"}}`:                                                                                            true,
		`{"error":{"message":"Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.","param":"temperature","code":"unsupported_value"}}`:              false,
		`{"error":{"message":"Unsupported parameter: 'logprobs' is not supported with this model.","param":"logprobs","code":"unsupported_parameter"}}`:                                                         false,
		`{"message":"Extra inputs are not permitted: 'store'"}`: false,
	} {
		if d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: []byte(body), Now: noon}); d.Facts.OfValue != want {
			t.Errorf("%s: of the value %t, want %t (%s by %s)", body, d.Facts.OfValue, want, d.Spec.Class, d.Rule)
		}
	}
}

// An error under a success status is recognised anywhere in the body. An answer
// without content is no error but an empty response.
func TestErrorInSuccess(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, c := range []struct {
		body  string
		class recovery.Class
	}{
		{`{"base_resp":{"status_code":2049,"status_msg":"invalid api key"}}`, recovery.Auth},
		{`{"id":"1","choices":null,"object":"chat.completion","usage":{"total_tokens":0},"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, recovery.QuotaExhausted},
		{`{"code":429,"msg":"请求过于频繁，请稍后再试"}`, recovery.RateLimit},
		{`{"Response":{"Error":{"Code":"RequestLimitExceeded","Message":"too many requests"},"RequestId":"x"}}`, recovery.RateLimit},
		{"data: {\"id\":\"\",\"object\":\"chat.completion.chunk\",\"choices\":null,\"error_message\":\"This model's maximum context length is 32768 tokens. However, your messages resulted in 40000 tokens.\"}\n\ndata: [DONE]\n\n", recovery.ContextLengthExceeded},
		{"data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"msg\":\"模型服务繁忙\"}\n\n", recovery.Overloaded},
		{`The service is temporarily unavailable.`, recovery.Overloaded},
		{`{"message":"The service is temporarily unavailable."}`, recovery.Overloaded},
		{"<html><body><h1>502 Bad Gateway</h1></body></html>", recovery.ServerError},
		{`{"status":"failed","reason":"a sentence that is in no rule"}`, recovery.Unknown},
		{`{"id":"1","choices":null,"base_resp":{"status_code":9999,"status_msg":"a sentence that is in no rule"}}`, recovery.Unknown},
		{`{"success":false,"message":"a sentence that is in no rule"}`, recovery.Unknown},
		{`{"code":7003,"message":"a sentence that is in no rule"}`, recovery.Unknown},
		{`{"errors":[{"message":"a sentence that is in no rule"}],"data":null}`, recovery.Unknown},
		{`a sentence that is in no rule`, recovery.Unknown},
		{`{"message":"a sentence that is in no rule"}`, recovery.EmptyResponse},
		{`{"detail":"a sentence that is in no rule"}`, recovery.EmptyResponse},
		{`{"error":null,"errors":[],"success":true,"message":"a sentence that is in no rule"}`, recovery.EmptyResponse},
		{`{"error":false,"code":200,"msg":"success","data":{"text":"An error occurred: rate limit exceeded."}}`, recovery.EmptyResponse},
		{`[{"generated_text":"Rate limit exceeded means that one has to wait."}]`, recovery.EmptyResponse},
		{`{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, recovery.EmptyResponse},
		{`{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"rate limit exceeded"}]}}],"message":"ok"}`, recovery.EmptyResponse},
		{`{"id":"r","object":"response","status":"completed","error":null,"instructions":"rate limit exceeded","tools":[{"description":"quota exceeded now"}],"metadata":{"message":"invalid api key"},"output":[{"type":"reasoning","summary":[{"text":"the server is overloaded"}]}]}`, recovery.EmptyResponse},
		{`{"code":0,"message":"success","data":null,"choices":[]}`, recovery.EmptyResponse},
		{"data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"instructions\":\"quota exceeded\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\n", recovery.EmptyResponse},
		{`{"type":"ping"}`, recovery.EmptyResponse},
		{"data: {\"type\":\"ping\"}\n\ndata: {\"code\":0,\"message\":\"success\"}\n\n", recovery.EmptyResponse},
		{"data: {\"code\":20000,\"message\":\"a sentence that is in no rule\"}\n\n", recovery.Unknown},
		{``, recovery.EmptyResponse},
		{`{"id":"1","choi`, recovery.StreamCut},
	} {
		d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseBody, Status: 200, Body: []byte(c.body), Now: noon})
		if d.Spec.Class != c.class {
			t.Errorf("%s: %s by %s, want %s", c.body, d.Spec.Class, d.Rule, c.class)
		}
		if c.class == recovery.Unknown && !slices.Contains(d.Spec.Plan, "move") {
			t.Errorf("%s: planned %v: no client causes an error in a success", c.body, d.Spec.Plan)
		}
	}
}

// A limit of tokens in a minute is that of an account; a window is that of a model.
func TestPerTime(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for body, want := range map[string]bool{
		"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 61337. The input or output tokens must be reduced in order to run successfully.":                         true,
		"Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7821, please reduce your message size and try again.": true,
		"This model's maximum context length is 128000 tokens. However, you requested 130512 tokens (126416 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.":       false,
		"prompt is too long: 208310 tokens > 200000 maximum": false,
	} {
		d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 413, Body: []byte(`{"error":{"message":` + strconv.Quote(body) + `}}`), Now: noon})
		if d.Spec.Class != recovery.ContextLengthExceeded || d.Facts.PerTime != want {
			t.Errorf("%s: per time %t, want %t (%s by %s)", body, d.Facts.PerTime, want, d.Spec.Class, d.Rule)
		}
	}
}
