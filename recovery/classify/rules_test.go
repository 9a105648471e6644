package classify_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/rule"
)

func TestMain(m *testing.M) {
	recoverytest.RunWithRules(m, configs.UpstreamRules, classify.New(configs.UpstreamRules).Check)
}

// TestExamples: each rule decides its examples, and none of its lookalikes.
func TestExamples(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	if err := tb.Check(-1); err != nil {
		t.Error(err)
	}
	rules, err := tb.Rules()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules.Len() {
		if r := rules.Rule(i); len(r.Meaning) < 20 || len(r.Meaning) > 160 {
			t.Errorf("%s: the meaning is no sentence: %q", r.Name, r.Meaning)
		}
	}
}

// TestCheckFails: Check reports a wrong example and a wrong lookalike with their places.
func TestCheckFails(t *testing.T) {
	own := rule.Rule{Name: "mine", Class: "quota_exhausted", Any: []string{"purse"}, Examples: []string{"429 slow down", "429 the purse is empty"},
		Lookalikes: []string{"400 the purse is empty", "429 slow down"}}
	err := classify.New(configs.UpstreamRules, own).Check(1)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"rules[0].examples[0]: is decided by", "rules[0].lookalikes[0]: is decided by mine"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if got := len(strings.Split(err.Error(), "\n")); got != 2 {
		t.Errorf("%d mistakes, want 2: %v", got, err)
	}
}

// TestOwnRules: an operator's rules are tried before the built-in ones, but not
// for a failure without an answer.
func TestOwnRules(t *testing.T) {
	own := rule.Rule{Name: "campus-budget", Class: "quota_exhausted", Any: []string{"rate limit"}, Examples: []string{"429 rate limit"}}
	tb := classify.New(configs.UpstreamRules, own)
	if d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 429, Body: []byte("Rate limit reached")}); d.Rule != own.Name || d.Spec.Class != recovery.QuotaExhausted {
		t.Errorf("decided by %s as %s", d.Rule, d.Spec.Class)
	}
	if d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseConnect, Err: errors.New("rate limit")}); d.Rule != "connection-failed" {
		t.Errorf("a connection error is decided by %s", d.Rule)
	}
}

// TestUnreadableRules: Check reports rules that cannot be read; transport failures
// are still recognised.
func TestUnreadableRules(t *testing.T) {
	tb := classify.New(func() (rule.Set, error) { return rule.Set{}, errors.New("no such file") })
	if err := tb.Check(-1); err == nil || err.Error() != "no such file" {
		t.Errorf("error %v", err)
	}
	if d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 429}); d.Spec.Class != recovery.Unknown || d.Rule != "unknown" {
		t.Errorf("decided by %s as %s", d.Rule, d.Spec.Class)
	}
	if d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStream, Stream: true}); d.Rule != "stream-cut" {
		t.Errorf("a cut is decided by %s", d.Rule)
	}
}

// TestExplain: Explain returns the deciding rule, and why others nearly matched.
func TestExplain(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	matching, near := tb.Explain(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 429, Body: []byte("402 Usage limit reached, try again in 5 minutes")})
	if len(matching) == 0 || matching[0].Rule.Class != "rate_limit" {
		t.Fatalf("matching %+v", matching)
	}
	found := false
	for _, f := range near {
		found = found || f.Rule.Name == "quota-text" && f.Missing == "unless" && f.Found == "usage limit"
	}
	if !found {
		t.Errorf("quota-text is not among those that came near: %+v", near)
	}
	if m, n := tb.Explain(recovery.Evidence{Phase: recovery.PhaseConnect, Err: errors.New("x")}); m != nil || n != nil {
		t.Errorf("an error without an answer is explained by rules: %v %v", m, n)
	}
}

// TestMistaken checks answers that were once misclassified.
func TestMistaken(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, c := range []struct {
		status int
		body   string
		class  recovery.Class
		param  string
	}{
		{429, `{"error":{"message":"No deployments available for selected model. 11 model=azure-gpt-4. passed model=gpt-4. Try again later","code":"429"}}`, recovery.RateLimit, ""},
		{429, `{"error":{"message":"litellm.RateLimitError: No deployments available for selected model, Try again in 60 seconds. Passed model=gpt` +
			`-4o. pre-call-checks=False, cooldown_list=['x']","type":"None","code":"429"}}`, recovery.RateLimit, ""},
		{400, `{"error":{"message":"litellm.BadRequestError: BedrockException - Bad response code, expected 200: {'status_code': 400, 'headers': {` +
			`':exception-type': 'serviceUnavailableException', ':content-type': 'application/json', ':message-type': 'exception'}, 'body': b'{\"messa` +
			`ge\":\"Bedrock is unable to process your request.\"}'}","code":"400"}}`, recovery.Overloaded, ""},
		{400, `{":exception-type":"serviceUnavailableException","message":"x"}`, recovery.Overloaded, ""},
		{400, `Bad response code, expected 200: {'status_code': 400, 'headers': {':exception-type': 'serviceUnavailableException'}, 'body': b''}`, recovery.Overloaded, ""},
		{400, `{"message":"Bedrock is unable to process your request."}`, recovery.Overloaded, ""},
		{400, `{"error":"Model is unloaded"}`, recovery.Overloaded, ""},
		{404, `{"error":"Model is unloaded."}`, recovery.Overloaded, ""},
		{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For details, see: https://help.al` +
			`iyun.com/zh/model-studio/error-code#token-limit","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, recovery.RateLimit, ""},
		{429, `{"error":{"message":"Too many tokens per day. Please try again tomorrow."}}`, recovery.QuotaExhausted, ""},
		{429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. For more information o` +
			`n this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.","status":"RESOURCE_EXHAUSTED"}}`, recovery.QuotaExhausted, ""},
		{429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EX` +
			`HAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}`, recovery.RateLimit, ""},
		{500, `{"error":{"code":500,"message":"Error: Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}`, recovery.InvalidRequest, ""},
		{500, `{"error":{"code":500,"message":"Value is not callable: null at row 1, column 72: While executing chat template","type":"server_error"}}`, recovery.InvalidRequest, ""},
		{500, `{"error":{"message":"The model didn't generate first token before the given deadline","type":"internal_server_error"}}`, recovery.Timeout, ""},
		{400, `{"error":{"message":"Model foo is currently not in use","type":"invalid_request_error"}}`, recovery.ModelNotFound, ""},
		{400, `{"error":{"message":"Extra inputs are not permitted, field: 'tools[0].function.strict', value: True","type":"invalid_reque` +
			`st_error"}}`, recovery.UnsupportedParameter, "tools[0].function.strict"},
		{400, `{"error":{"object":"error","type":"invalid_request_error","message":"Extra inputs are not permitted, field: 'messages[2].reasoning'` +
			`, value: 'x'"}}`, recovery.UnsupportedParameter, "messages[2].reasoning"},
		{429, `{"error":{"message":"Rate limit reached. Please reduce the length of your prompt or try again in 20s."}}`, recovery.RateLimit, ""},
		{400, `{"error":{"message":"invalid params, invalid role (2013)"}}`, recovery.InvalidRequest, "role"},
		{400, `{"error":{"message":"'messages[3].content': maximum length of 256000 characters exceeded"}}`, recovery.InvalidRequest, "messages[3].content"},
		{400, `{"error":{"message":"context window is too small for this model: minimum is 16000 tokens"}}`, recovery.InvalidRequest, ""},
		{401, `{"error":{"message":"The access token expired; too many tokens were issued"}}`, recovery.Auth, ""},
		{403, `{"error":{"message":"access token has exceeded its quota"}}`, recovery.QuotaExhausted, ""},
		{413, `{"error":{"message":"Request body too large. Max size: 8000000 bytes."}}`, recovery.PayloadTooLarge, ""},
	} {
		d := tb.Classify(recovery.Evidence{Phase: recovery.PhaseStatus, Status: c.status, Body: []byte(c.body), Now: noon})
		if d.Spec.Class != c.class {
			t.Errorf("%.120s: got %s by %s, want %s", c.body, d.Spec.Class, d.Rule, c.class)
		}
		if d.Facts.Param != c.param {
			t.Errorf("%.120s: got parameter %q, want %q", c.body, d.Facts.Param, c.param)
		}
	}
}
