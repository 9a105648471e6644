package classify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// phrasing lists ways to say one thing, and the statuses it comes with.
type phrasing struct {
	class    recovery.Class
	statuses []int
	texts    []string
}

// phrasings are sentences that providers send or could send. The class must not
// depend on one wording, wrapper or status.
var phrasings = []phrasing{
	{recovery.ContextLengthExceeded, []int{400, 413, 422, 500, 200}, []string{
		"The prompt has 140000 tokens, which is more than this model can take (131072).",
		"Your input of 140000 tokens is over the model's limit of 131072 tokens.",
		"Input is 140000 tokens but the model accepts at most 131072 tokens.",
		"Requested 140000 tokens, max 131072 tokens per request",
		"This request would use 140000 tokens; the context window holds 131072.",
		"The request is too long for this model: 140000 tokens (limit 131072).",
		"Token limit exceeded: 140000/131072",
		"140000 tokens > 131072 token context window",
		"The total number of tokens (140000) exceeds the model's capacity of 131072.",
		"Conversation exceeds the model's maximum context of 131072 tokens.",
		"Context window exceeded. Please start a new conversation.",
		"context window full",
		"The conversation is too large for the model. Please compact it.",
		"Messages have 140000 tokens, which exceeds the max limit of 131072 tokens.",
		"prompt tokens (140000) + max_tokens (4096) exceeds context length (131072)",
		"The sum of prompt tokens and max_tokens exceeds the model's context length of 131072 tokens",
		"This model supports up to 131072 tokens of context, but the request has 140000.",
		"Too many input tokens: 140000. Maximum is 131072.",
		"Input too long: 140000 tokens. Max: 131072",
		"input_tokens must be at most 131072 but got 140000",
		"The model has a context length of 131072 tokens but the request needs 140000 tokens",
		"Sequence of 140000 tokens does not fit into the context of 131072 tokens",
		"Your request exceeds the token limit of this model",
		"Please shorten your prompt: it is 8928 tokens too long.",
		"输入内容过长，超过了模型的最大上下文长度 131072 tokens",
		"输入token数 140000 超过模型上限 131072",
		"请求的 token 总数超过模型上下文窗口限制",
		"对话内容过长，请缩短后重试",
		"提示词长度超过限制",
		"上下文窗口已满，请新建会话",
		"请求内容超过模型支持的最大长度",
		"消息总长度超出模型限制",
	}},
	{recovery.MaxOutputExceeded, []int{400, 422}, []string{
		"max_tokens (65536) is greater than the maximum output of this model (8192)",
		"max_tokens must not exceed 8192",
		"max_completion_tokens: 65536 is more than the 8192 this model can generate",
		"The value of max_tokens is too large, the largest allowed value is 8192",
		"Invalid value for max_tokens: should be in range 1 to 8192",
		"maxOutputTokens must be in the range [1, 8192], got 65536",
		"The requested number of output tokens (65536) exceeds the limit of 8192 for this model",
		"max_output_tokens cannot be larger than 8192",
		"max_new_tokens exceeds the allowed limit 8192",
		"max_tokens 参数超出范围，取值范围为 1 到 8192",
		"max_tokens 不能超过 8192",
		"最大输出长度不能超过 8192",
		"`max_tokens` should be between 1 and 8192",
		"max_tokens: Input should be less than or equal to 8192",
		"65536 is greater than the maximum of 8192 - 'max_tokens'",
	}},
	{recovery.RateLimit, []int{429}, []string{
		"You are sending requests too quickly. Please slow down.",
		"Too many tokens, please wait before trying again.",
		"Too many tokens per day, please wait before trying again.",
		"Number of request tokens has exceeded your per-minute rate limit. Please reduce the prompt length or try again later.",
		"This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
		"Rate limit reached for tokens per minute (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
		"You have hit your requests-per-minute limit of 20.",
		"Limit of 5 concurrent requests reached.",
		"Maximum number of concurrent requests exceeded for your account",
		"API rate limit exceeded, current limit: 60 RPM",
		"Requests rate limit exceeded, please try again later.",
		"The request was throttled.",
		"Request was throttled. Expected available in 3 seconds.",
		"Daily request limit of 1000 requests per day reached, try again in 20 minutes.",
		"TPM limit reached: 30000 tokens per minute",
		"Quota exceeded for requests per minute. Retry after 12 seconds.",
		"Resource has been exhausted (e.g. check quota).",
		"请求过于频繁，请稍后重试",
		"您的请求频率过高，请降低请求频率",
		"已达到每分钟请求数上限",
		"当前并发数超过限制",
		"触发限流，请稍后再试",
		"每分钟 token 数超过限制 30000",
		"TPM limit reached",
		"RPM limit exceeded",
	}},
	{recovery.QuotaExhausted, []int{429, 402, 403, 400}, []string{
		"You have run out of credits.",
		"Your account balance is insufficient.",
		"Insufficient credits. Please add more to continue.",
		"You have reached your monthly spending limit.",
		"Your prepaid credits are depleted.",
		"Billing hard limit has been reached",
		"Your trial has expired. Please upgrade to continue.",
		"You exceeded your current quota, please check your plan and billing details.",
		"Monthly token quota exceeded, resets next month.",
		"Key limit exceeded (total limit). Manage it in your settings.",
		"This key has reached its spending limit",
		"No credits left on this account",
		"You have used all of your included usage for this billing period.",
		"Payment is required to continue using this service",
		"Your subscription has ended. Please renew it.",
		"budget limit exceeded for this team",
		"账户余额不足，请充值后重试",
		"您的账户已欠费",
		"免费额度已用完",
		"套餐额度已用尽，请升级套餐",
		"用户额度不足, 剩余额度: ＄0.000000",
		"本月额度已用完",
	}},
	{recovery.Overloaded, []int{503, 529, 429}, []string{
		"The model is currently overloaded with other requests.",
		"We are experiencing high demand right now. Please try again later.",
		"Server is at capacity",
		"The engine is currently overloaded, please try again later",
		"Model is overloaded, please retry",
		"The service is too busy. Please retry later.",
		"No capacity available for the requested model",
		"We're currently processing too many requests for this model — the server is busy",
		"模型负载过高，请稍后重试",
		"服务器繁忙，请稍后再试",
		"系统繁忙",
		"当前模型访问量过大",
		"当前使用人数过多，服务繁忙",
		"Model is temporarily at capacity",
		"The system is under heavy load",
	}},
	{recovery.ServerError, []int{500, 502}, []string{
		"The server had an error processing your request. Sorry about that!",
		"An internal error has occurred",
		"Something went wrong on our end",
		"Unexpected error",
		"Bad gateway",
		"upstream connect error or disconnect/reset before headers. reset reason: connection termination",
		"服务内部错误",
		"系统内部异常，请联系客服",
		"An unexpected failure occurred while generating the response",
	}},
	{recovery.Timeout, []int{504, 408, 500, 200}, []string{
		"The request timed out.",
		"Request timed out after 600 seconds",
		"The upstream did not answer in time: timeout",
		"Deadline exceeded while waiting for the model",
		"Upstream request timeout",
		"请求超时",
		"模型响应超时，请重试",
		"context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
		"Gateway Time-out",
		"The model took too long to respond",
	}},
	{recovery.UnsupportedParameter, []int{400, 422}, []string{
		"Unknown parameter: 'reasoning_effort'.",
		"The parameter 'logit_bias' is not supported by this model.",
		"top_k is not supported",
		"Unrecognized field: parallel_tool_calls",
		"this model does not support the temperature parameter",
		"json: unknown field \"store\"",
		"'frequency_penalty' is not permitted for this model",
		"Additional properties are not allowed ('metadata' was unexpected)",
		"reasoning_effort: Extra inputs are not permitted",
		"stream_options is only allowed when stream is enabled - not supported here",
		"This model does not support tools.",
		"Function calling is not supported for this model",
		"The model does not support system messages",
		"role 'developer' is not supported",
		"response_format json_schema is not supported by this model",
		"thinking is not supported for this model",
		"参数 top_k 不支持",
		"该模型不支持 tools 参数",
		"模型不支持函数调用",
		"Unsupported value: 'temperature' must be 1 for this model",
		"Invalid request: invalid temperature: only 1 is allowed for this model",
		"max_tokens is not supported, use max_completion_tokens",
		"Unsupported parameter(s): 'seed'",
	}},
	{recovery.InvalidToolSchema, []int{400}, []string{
		"Invalid schema for function 'x': In context=('properties', 'a'), array schema missing items.",
		"tools.3.custom.input_schema: JSON schema is invalid.",
		"tools[0].function.parameters: schema must be of type object",
		"tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
		"Invalid 'tools[0].function.name': string does not match pattern.",
		"The schema of tool 'x' is not a valid JSON Schema",
		"tool 'x' has an invalid parameters schema",
		"GenerateContentRequest.tools[0].function_declarations[3].parameters.properties: should be non-empty for OBJECT type",
		"工具参数 schema 不合法",
	}},
	{recovery.ToolPairing, []int{400}, []string{
		"tool_call_id call_1 has no matching tool call",
		"Each tool call must be followed by a tool result",
		"A tool result was sent without a preceding tool call",
		"Missing tool result for tool call call_1",
		"messages: tool message must come right after the assistant message that has tool_calls",
		"No tool call found for function call output with call_id call_1.",
		"unexpected tool_result block: no tool_use with id toolu_1 in the previous message",
		"tool messages must be preceded by an assistant message with tool_calls",
		"工具调用缺少对应的结果",
		"tool_calls 消息后必须有对应的 tool 消息",
	}},
	{recovery.InvalidJSONBody, []int{400}, []string{
		"We could not parse the JSON body of your request.",
		"Request body is not valid JSON",
		"Malformed JSON in request body",
		"JSON parse error: unexpected end of input",
		"invalid character '}' looking for beginning of object key string",
		"请求体 JSON 格式错误",
		"JSON decode error: Expecting ',' delimiter: line 1 column 5 (char 4)",
	}},
	{recovery.InvalidRequest, []int{400}, []string{
		"messages must not be empty",
		"Invalid 'temperature': must be between 0 and 2",
		"The first message must have the user role",
		"roles must alternate between user and assistant",
		"messages: at least one message is required",
		"Missing required parameter: 'messages'",
		"top_p must be in the range (0, 1]",
		"System message must be at the beginning",
		"messages: final assistant content cannot end with trailing whitespace",
		"消息内容不能为空",
		"Invalid 'stop': array too long. Expected an array with maximum length 4, but got 5.",
		"Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 87.",
		"max_tokens must be greater than thinking.budget_tokens",
		"max_tokens must be at least 1",
	}},
	{recovery.ContentPolicy, []int{400, 403}, []string{
		"The content was blocked by our safety filters",
		"Your prompt violates our usage policy",
		"The response was filtered by the content filter",
		"Content flagged as unsafe",
		"Request blocked: prohibited content",
		"输入内容包含敏感信息",
		"内容违规，请修改后重试",
		"您的输入未通过内容安全审核",
	}},
	{recovery.Auth, []int{401}, []string{
		"Invalid API key",
		"The API key you provided is not valid",
		"Your API key has expired",
		"No authorization header was sent",
		"Token is expired or invalid",
		"Unauthorized",
		"无效的 API Key",
		"令牌已过期",
	}},
	{recovery.Auth, []int{400, 403}, []string{
		"API key not valid. Please pass a valid API key.",
		"Incorrect API key provided",
		"Your API key was revoked",
		"The security token included in the request is expired",
	}},
	{recovery.Permission, []int{403}, []string{
		"You do not have permission to use this model",
		"Your organization is not allowed to use this model",
		"Access denied",
		"This region is not supported",
		"Forbidden",
		"您没有权限访问该资源",
		"Your plan does not include access to this feature",
	}},
	{recovery.ModelNotFound, []int{404, 400}, []string{
		"The model 'x-1' does not exist",
		"Model x-1 not found",
		"Unknown model: x-1",
		"x-1 is not a valid model ID",
		"The model x-1 has been retired",
		"model 'x-1' not found, try pulling it first",
		"No such model: x-1",
		"模型 x-1 不存在",
		"未知模型",
		"该模型已下线",
		"The requested model is not available",
		"There is no model named x-1",
	}},
	{recovery.PayloadTooLarge, []int{413}, []string{
		"Request Entity Too Large",
		"Payload too large: 12000000 bytes",
		"Request body exceeds the limit of 10485760 bytes",
		"The request exceeds the maximum allowed size of 20 MB",
		"请求体过大",
	}},
	{recovery.ImageOrMediaError, []int{400}, []string{
		"Could not process image",
		"The image is too large",
		"Unsupported image format",
		"This model does not support image input",
		"Too many images in the request (max 20)",
		"Failed to download image from URL",
		"图片格式不支持",
		"该模型不支持图片输入",
		"Invalid base64 image data",
		"PDF has too many pages",
	}},
	{recovery.ModelOutputInvalid, []int{400}, []string{
		"Failed to call a function. Please adjust your prompt.",
		"The model generated an invalid tool call",
		"Failed to parse tool call arguments generated by the model",
		"Model output could not be parsed as JSON",
	}},
}

// lookalikes are sentences that contain another class's words.
var lookalikes = []struct {
	status int
	text   string
	class  recovery.Class
}{
	{400, "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens", recovery.MaxOutputExceeded},
	{400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", recovery.UnsupportedParameter},
	{429, "Rate limit reached. Please reduce the length of your prompt or try again in 20s.", recovery.RateLimit},
	{429, "Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 61337.", recovery.ContextLengthExceeded},
	{429, "Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 1337. Please try again in 2s.", recovery.RateLimit},
	{429, "Too many tokens, please wait before trying again.", recovery.RateLimit},
	{400, "image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes", recovery.ImageOrMediaError},
	{400, "The image dimensions exceed max allowed size: 8000 pixels", recovery.ImageOrMediaError},
	{400, "String value length (20054016) exceeds the maximum allowed (20000000)", recovery.PayloadTooLarge},
	{400, "invalid params, context window exceeds limit (2013)", recovery.ContextLengthExceeded},
	{400, "invalid params, invalid role (2013)", recovery.InvalidRequest},
	{402, "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 10114.", recovery.QuotaExhausted},
	{402, "Prompt tokens limit exceeded: 230799 > 91442. To increase, create a key with a higher monthly limit", recovery.QuotaExhausted},
	{400, "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.", recovery.InvalidRequest},
	{400, "Invalid 'input[39].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead.", recovery.InvalidRequest},
	{400, "`max_tokens` must be greater than `thinking.budget_tokens`", recovery.InvalidRequest},
	{400, "A maximum of 4 blocks with cache_control may be provided. Found 5.", recovery.InvalidRequest},
	{400, "Invalid schema for function 'x': In context=('properties', 'y'), 'additionalProperties' is required", recovery.InvalidToolSchema},
	{400, "Invalid function name. Must start with a letter, with a maximum length of 64. tools[0].function_declarations[1].name", recovery.InvalidToolSchema},
	{429, "Your request exceeds the maximum usage size allowed during peak load; we are experiencing high demand", recovery.Overloaded},
	{429, "You exceeded your current quota, please check your plan and billing details.", recovery.QuotaExhausted},
	{429, "You exceeded your current quota, please check your plan and billing details. Quota exceeded for metric: x/generate_requests_per_minute, limit: 15. Please retry in 36s.", recovery.RateLimit},
	{429, "RateLimitError: OpenAIException - You exceeded your current quota, please check your plan and billing details.", recovery.QuotaExhausted},
	{429, "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for requests per min (RPM): Limit 3, Used 3.", recovery.RateLimit},
	{503, "Worker exceeded resource limits", recovery.ServerError},
	{404, "No endpoints found that support image input", recovery.ImageOrMediaError},
	{400, "'messages[3].content': maximum length of 256000 characters exceeded", recovery.InvalidRequest},
	{401, "The access token expired; too many tokens were issued", recovery.Auth},
	{429, "You've reached your usage limit for this 5-hour window. Your limit will reset shortly.", recovery.RateLimit},
	{429, "Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-03-06 22:19:54", recovery.QuotaExhausted},
	{413, "Request body too large for gpt-x model. Max size: 8000 tokens.", recovery.ContextLengthExceeded},
	{413, "Request body too large. Max size: 8000000 bytes.", recovery.PayloadTooLarge},
	{400, "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", recovery.InvalidRequest},
	{400, "context window is too small for this model: minimum is 16000 tokens", recovery.InvalidRequest},
	{400, "token quota is not enough, token remain quota: 0.25, need quota: 5.5", recovery.QuotaExhausted},
	{403, "access token has exceeded its quota", recovery.QuotaExhausted},
}

// wrap puts a sentence into the envelopes in which servers send it.
var wrap = []struct {
	name string
	body func(text string, status int) string
}{
	{"openai", func(s string, _ int) string {
		return `{"error":{"message":` + jsonString(s) + `,"type":"invalid_request_error","param":null,"code":null}}`
	}},
	{"anthropic", func(s string, _ int) string {
		return `{"type":"error","error":{"type":"invalid_request_error","message":` + jsonString(s) + `},"request_id":"req_1"}`
	}},
	{"flat", func(s string, _ int) string { return `{"message":` + jsonString(s) + `}` }},
	{"string", func(s string, _ int) string { return `{"error":` + jsonString(s) + `}` }},
	{"detail", func(s string, _ int) string { return `{"detail":` + jsonString(s) + `}` }},
	{"google", func(s string, n int) string {
		status := "INVALID_ARGUMENT"
		if n >= 500 {
			status = "UNKNOWN"
		}
		return fmt.Sprintf(`[{"error":{"code":%d,"message":%s,"status":%q}}]`, n, jsonString(s), status)
	}},
	{"litellm", func(s string, n int) string {
		return fmt.Sprintf(`{"error":{"message":%s,"type":null,"param":null,"code":"%d"}}`,
			jsonString(`litellm.BadRequestError: OpenAIException - {"error":{"message":`+jsonString(s)+`}}. Received Model Group=some-model`+"\n"+`Available Model Group Fallbacks=None`), n)
	}},
	{"openrouter", func(s string, n int) string {
		return fmt.Sprintf(`{"error":{"message":"Provider returned error","code":%d,"metadata":{"raw":%s,"provider_name":"X"}},"user_id":"u"}`,
			n, jsonString(`{"error":{"message":`+jsonString(s)+`,"type":"invalid_request_error"}}`))
	}},
	{"one-api", func(s string, _ int) string {
		return `{"error":{"message":` + jsonString(s+" (request id: 20250903003241616637594M0nCmn54)") + `,"type":"new_api_error","param":"","code":null}}`
	}},
	{"python", func(s string, n int) string {
		return fmt.Sprintf(`{"error":{"message":%s}}`, jsonString(fmt.Sprintf("Error code: %d - {'error': {'message': %s, 'type': "+
			"'invalid_request_error', 'param': None, 'code': None}}", n, pythonString(s))))
	}},
	{"plain", func(s string, _ int) string { return s }},
}

func jsonString(s string) string { b, _ := json.Marshal(s); return string(b) }

// pythonString is repr(s).
func pythonString(s string) string {
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
}

func classOf(tb *classify.Table, status int, body string) (recovery.Class, string) {
	ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: status, Body: []byte(body), Now: noon}
	if status == 200 {
		ev.Stream, ev.Phase = true, recovery.PhaseStream
	}
	d := tb.Classify(ev)
	return d.Spec.Class, d.Rule
}

func TestPhrasings(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	all, wrong := 0, 0
	for _, p := range phrasings {
		for _, text := range p.texts {
			var misses []string
			for _, status := range p.statuses {
				for _, w := range wrap {
					all++
					if got, rule := classOf(tb, status, w.body(text, status)); got != p.class {
						wrong++
						misses = append(misses, fmt.Sprintf("%d/%s→%s by %s", status, w.name, got, rule))
					}
				}
			}
			if len(misses) > 0 {
				t.Errorf("%s: %q: %d misses: %s", p.class, text, len(misses), strings.Join(misses[:min(3, len(misses))], "; "))
			}
		}
	}
	for _, n := range lookalikes {
		for _, w := range wrap {
			all++
			if got, rule := classOf(tb, n.status, w.body(n.text, n.status)); got != n.class {
				wrong++
				t.Errorf("%d/%s: %q: want %s, got %s by %s", n.status, w.name, n.text, n.class, got, rule)
			}
		}
	}
	t.Logf("%d of %d", all-wrong, all)
}

// TestPhrasingFacts: the tokens and the limit of an overflow are found in any wording.
func TestPhrasingFacts(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	for _, p := range phrasings {
		if p.class != recovery.ContextLengthExceeded && p.class != recovery.MaxOutputExceeded {
			continue
		}
		for _, text := range p.texts {
			f := tb.Stated(recovery.Evidence{Phase: recovery.PhaseStatus, Status: 400, Body: []byte(wrap[0].body(text, 400)), Now: noon})
			for _, want := range []struct {
				number string
				value  int
				names  []string
			}{
				{"131072", 131072, []string{"limit_tokens"}},
				{"140000", 140000, []string{"requested_tokens", "input_tokens"}},
				{"8192", 8192, []string{"max_output_limit"}},
				{"65536", 65536, []string{"requested_output"}},
			} {
				found := !strings.Contains(text, want.number)
				for _, name := range want.names {
					found = found || f[name] == want.value
				}
				if !found {
					t.Errorf("%q: %v of %s: %v", text, want.names, want.number, f)
				}
			}
		}
	}
}
