package classify_test

import (
	"encoding/json"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// statedCase is an error message with its class and some of the facts it states.
type statedCase struct {
	status int
	text   string
	class  recovery.Class
	facts  map[string]any
}

// constraints are complaints of schema checks: the class depends on the field that
// they name, not on the words.
var constraints = []statedCase{
	{400, "Malformed input request: #/textGenerationConfig/maxTokenCount: 8192 is not less or equal to 3072, please reformat your input and try again.",
		recovery.MaxOutputExceeded, map[string]any{"max_output_limit": 3072, "requested_output": 8192, "param": "textGenerationConfig.maxTokenCount"}},
	{400, "Malformed input request: #/max_tokens_to_sample: 20000 is not less or equal to 4096, please reformat your input and try again.",
		recovery.MaxOutputExceeded, map[string]any{"max_output_limit": 4096, "requested_output": 20000, "param": "max_tokens_to_sample"}},
	{400, "Malformed input request: 2 schema violations found\n#/max_tokens: 5000 is not less or equal to 4096\n#/temperature: 1.5 is not less or equal to 1, please reformat your input and try again.",
		recovery.MaxOutputExceeded, map[string]any{"max_output_limit": 4096, "requested_output": 5000, "param": "max_tokens"}},
	{400, "Malformed input request: #/temperature: 2 is not less or equal to 1, please reformat your input and try again.",
		recovery.InvalidRequest, map[string]any{"param": "temperature"}},
	{400, "Malformed input request: #/stop_sequences: expected maximum item count: 4, found: 5, please reformat your input and try again.",
		recovery.InvalidRequest, map[string]any{"param": "stop_sequences"}},
	{400, "Malformed input request: #/prompt: expected maxLength: 2048, actual: 30123, please reformat your input and try again.",
		recovery.PayloadTooLarge, map[string]any{"limit_chars": 2048, "requested_chars": 30123}},
	{400, "1 validation error detected: Value '32000' at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value less than or equal to 8192",
		recovery.MaxOutputExceeded, map[string]any{"max_output_limit": 8192, "param": "inferenceConfig.maxTokens"}},
	{400, "1 validation error detected: Value '' at 'toolConfig.tools.1.member.toolSpec.description' failed to satisfy constraint: Member must have length greater than or equal to 1",
		recovery.InvalidToolSchema, map[string]any{"param": "toolConfig.tools.1.member.toolSpec.description"}},
	{400, "1 validation error detected: Value 'read_image.v2' at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
		recovery.InvalidToolSchema, map[string]any{"param": "toolConfig.tools.1.member.toolSpec.name"}},
	{400, "1 validation error detected: Value 'toolu:1' at 'messages.4.member.content.1.member.toolResult.toolUseId' failed to satisfy constraint: Member must have length less than or equal to 64",
		recovery.ToolPairing, nil},
	{400, "1 validation error detected: Value '[a, b, c, d, e]' at 'inferenceConfig.stopSequences' failed to satisfy constraint: Member must have length less than or equal to 4",
		recovery.InvalidRequest, map[string]any{"param": "inferenceConfig.stopSequences"}},
	{400, "1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than or equal to 25000000",
		recovery.PayloadTooLarge, map[string]any{"limit_bytes": 25000000}},
}

// fieldsInWords name a field in words.
var fieldsInWords = []statedCase{
	{400, "The thinking budget 64000 is out of range. Supported values are 1 to 24576.", recovery.InvalidRequest, map[string]any{"param": "thinking_budget"}},
	{400, "Too many stop sequences: 6, maximum is 4", recovery.InvalidRequest, map[string]any{"param": "stop_sequences"}},
	{400, "Parallel tool calls are not supported by this model", recovery.UnsupportedParameter, map[string]any{"param": "parallel_tool_calls"}},
	{400, "This model does not support frequency penalty.", recovery.UnsupportedParameter, map[string]any{"param": "frequency_penalty"}},
	{400, "Reasoning effort is not supported by this model", recovery.UnsupportedParameter, map[string]any{"param": "reasoning_effort"}},
	{400, "Logit bias is not supported for this model", recovery.UnsupportedParameter, map[string]any{"param": "logit_bias"}},
	{400, "max tokens must be between 1 and 4096, got 5000", recovery.MaxOutputExceeded,
		map[string]any{"param": "max_tokens", "max_output_limit": 4096, "requested_output": 5000}},
	// Below the range, not above it: a smaller limit would not help.
	{400, "max_tokens (-1) must be between 1 and 4096", recovery.InvalidRequest, map[string]any{"param": "max_tokens"}},
}

// ambiguousLimits do not say in words what is limited: the account's money, the
// credential, the provider or the model.
var ambiguousLimits = []statedCase{
	{402, "max_completion_tokens limit exceeded: 64000 > 1200. To increase, visit https://openrouter.ai/settings/keys and create a key with a higher daily limit",
		recovery.QuotaExhausted, map[string]any{"requested_output": 64000, "affordable_output": 1200, "param": "max_completion_tokens"}},
	{402, "Completion tokens limit exceeded: 64000 > 1200. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account",
		recovery.QuotaExhausted, map[string]any{"requested_output": 64000, "affordable_output": 1200}},
	{400, "max_tokens limit exceeded: 100000 > 8192", recovery.MaxOutputExceeded, map[string]any{"requested_output": 100000, "max_output_limit": 8192}},
	{429, "Too many requests: the request queue is full", recovery.Overloaded, nil},
	{400, "#/max_tokens: value '9000' is not less or equal to 4096", recovery.MaxOutputExceeded, map[string]any{"param": "max_tokens"}},
	{429, "Rate limit exceeded: 6/5 requests per second for this endpoint", recovery.RateLimit, map[string]any{"limit_requests": 5}},
	{429, "RPM limit 15 reached; TPM limit 250000 not reached", recovery.RateLimit, map[string]any{"limit_requests": 15, "limit_tokens": 250000}},
	{429, "Rate limit on input tokens per minute (TPM): Limit 10k, Used 9k, Requested 2k", recovery.RateLimit,
		map[string]any{"limit_tokens": 10000, "used_tokens": 9000, "requested_tokens": 2000}},
	{429, "Rate limit: usage over a rolling 24-hour window - tokens (actual/limit): 1065387/1000000", recovery.RateLimit,
		map[string]any{"limit_tokens": 1000000, "used_tokens": 1065387}},
	{413, "content length 2097153 exceeds 2097152", recovery.PayloadTooLarge, map[string]any{"limit_bytes": 2097152, "requested_bytes": 2097153}},
	{429, "Too Many Requests: no available workers", recovery.Overloaded, nil},
	{429, "You have exceeded the number of tokens allowed in this time period.", recovery.RateLimit, nil},
	{403, "The requested model 'x' is not available for this API key", recovery.Permission, nil},
	{400, "The model `x` is blocked at the project level.", recovery.Permission, nil},
	{400, "Bad Request", recovery.Unknown, nil},
	{400, "Prompt has 9000 tokens. Context limit is 8192 tokens; that leaves 0 output tokens", recovery.ContextLengthExceeded,
		map[string]any{"limit_tokens": 8192}},
	{400, "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).", recovery.ContextLengthExceeded,
		map[string]any{"input_tokens": 1048600, "requested_tokens": 1048600, "limit_tokens": 1048576}},
}

func TestFieldsAndLimits(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, list := range [][]statedCase{constraints, fieldsInWords, ambiguousLimits} {
		for _, c := range list {
			body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": c.text}})
			ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: c.status, Body: body, Now: noon}
			if d := tb.Classify(ev); d.Spec.Class != c.class {
				t.Errorf("%q: got %s by %s, want %s", c.text, d.Spec.Class, d.Rule, c.class)
			}
			stated := tb.Stated(ev)
			for name, want := range c.facts {
				if stated[name] != want {
					t.Errorf("%q: %s: got %v, want %v", c.text, name, stated[name], want)
				}
			}
		}
	}
}

// TestPartsOfAPrompt: the size of a part is not the size of the prompt, and the room
// left for output is not the requested output.
func TestPartsOfAPrompt(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for text, absent := range map[string]string{
		"This endpoint's maximum context length is 256000 tokens. However, you requested about 256493 tokens (194895 of text input, 10398 of tool input, 51200 in the output).": "input_tokens",
		"This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (3000 in the messages, 500 in the functions, 1500 in the completion).":          "input_tokens",
		"Context limit is 49152 tokens; prompt=51402 leaves 0 output tokens, below the minimum 16":                                                                              "max_output_tokens",
	} {
		body, _ := json.Marshal(map[string]any{"error": text})
		stated := tb.Stated(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: body, Now: noon})
		if got, ok := stated[absent]; ok || stated["limit_tokens"] == nil {
			t.Errorf("%q: %s = %v of %v", text, absent, got, stated)
		}
	}
}

// TestTwiceNamed: a parameter that two messages name counts once.
func TestTwiceNamed(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, body := range []string{
		`{"detail":[{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted"},{"type":"extra_forbidden","loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}`,
		`{"error":{"message":"property 'top_k' is unsupported\nError: property 'top_k' is unsupported"}}`,
	} {
		stated := tb.Stated(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: []byte(body), Now: noon})
		if stated["param"] != "top_k" || stated["params"] != nil {
			t.Errorf("%s: %v", body, stated)
		}
	}
}
