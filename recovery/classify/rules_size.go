package classify

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// sizeRules recognise requests that are too large: for a minute's allowance,
// for the model's output, for its window, for the server's buffers.
func sizeRules() []rule {
	return []rule{
		{name: "throttled-tokens", class: recovery.RateLimit, any: []string{"too many tokens, please wait", "too many tokens per", "throttl",
			"too many tokens processed", "tokens per minute", "tokens per min", "tokens per day", "tokens per hour", "tokens per second", "|tpm|",
			"|rpm|", "|tpd|", "|rpd|", "per minute", "per-minute", "/min|", "每分钟", "每秒",
			"rate limit", "rate-limit", "ratelimit", "too many requests", "requests per", "slow down", "rate increased too quickly",
			"quota exceeded for", "too many concurrent", "concurrency", "time frame", "timeframe", "time period"},
			not: []string{"maximum context", "context length", "context window", "per request", "context_length", "prompt is too long",
				"overloaded", "is busy", "too busy", "queue is full", "queue full", "queue size", "worker local",
				"no available worker", "at capacity", "over capacity", "no capacity"},
			when: func(v *view) bool {
				return !v.has([]string{"engineoverloaded", "overloaded", "serveroverloaded", "serverisoverloaded"}) &&
					(v.Status == 429 || v.Status == 413 || v.Status < 429 && !v.has([]string{"contextlengthexceeded"}))
			}},
		{name: "throttled-code", class: recovery.RateLimit, codes: []string{"1039"}, not: []string{"exceed", "context"}},
		{name: "payload-code", class: recovery.PayloadTooLarge, codes: []string{"request_too_large", "payload_too_large", "entity_too_large",
			"request_entity_too_large", "RequestEntityTooLargeException", "body_too_large", "content_too_large", "characters_too_long",
			"string_above_max_length",
			"FUNCTION_PAYLOAD_TOO_LARGE"}, not: []string{"token"},
			when: func(v *view) bool { return !v.has([]string{"stringabovemaxlength"}) || longContent(v) }},
		{name: "context-code", class: recovery.ContextLengthExceeded, codes: []string{
			"context_length_exceeded", "context_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded", "context_window_exceeded",
			"model_context_window_exceeded", "ContextWindowExceededError", "prompt_too_long", "input_too_long", "context_too_long",
			"context_overflow", "context_length_error", "context_limit_exceeded", "max_context_length_exceeded", "max_prompt_tokens_exceeded",
			"token_limit_exceeded", "tokens_limit_reached",
			"string_too_long_for_context", "1261", "max_tokens_limit_exceeded_for_input", "input_token_limit_exceeded", "too_many_prompt_tokens",
			"prompt_tokens_exceeded", "request_token_limit_exceeded", "invalid_request_error_context", "max_input_tokens_exceeded",
			"ContextLengthExceededError", "context_size_exceeded"}},
		{name: "max-output-code", class: recovery.MaxOutputExceeded, codes: []string{"max_tokens_exceeded", "max_output_tokens_exceeded",
			"invalid_max_tokens"}, not: []string{"context"}},
		{name: "max-output-schema", class: recovery.MaxOutputExceeded, when: outputBreached},
		{name: "max-output-window", class: recovery.MaxOutputExceeded, any: []string{"fewer output tokens", "|max_tokens|…cannot be greater than",
			"|max_completion_tokens|…cannot be greater than"}, not: []string{"input", "prompt", "messages", "credits"}, when: not(quotaStatus)},
		{name: "max-output", class: recovery.MaxOutputExceeded, any: append([]string{"max tokens", "maximum tokens", "output tokens",
			"completion tokens", "max output tokens", "max completion tokens", "最大输出", "最大token", "output length"}, outputNames[:]...),
			also: []string{"too large", "less than or equal", "<=|", "≤", "at most", "maximum allowed", "valid range", "range of",
				"range is", "range:", "supported range", "not exceed", "cannot exceed", "can't exceed", "exceeds", "exceeded", "above max",
				"above the max", "no more than", "no greater than", "must be less than", "should be less than", "lower than", "must be between",
				"should be between", "between 1 and", "must be in", "should be in", "in the range", "greater than the max", "is greater than",
				"larger than", "is over", "max allowed", "maximum value", "upper limit", "out of range", "is limited to", "maximum is", "max is",
				"limit is", "allowed limit", "more than", "expected a value <=", "outside", "超过", "不能大于", "应在", "范围", "[1,", "higher than"},
			not: []string{"maximum context length", "context limit", "context size", "maximum model length", "max_model_len", "'inputs' tokens",
				"input tokens", "input messages", "prompt", "input length", "total token", "number of tokens in", "tokens in request",
				"context window of", "context window limit", "context window exceed", "exceed context", "exceed the context", "exceeds the context",
				"exceeds model context",
				"exceeds context", "context length", "messages", "budget_tokens", "budget tokens", "per minute", "thinking budget", "credits",
				"must be at least", "greater than 'thinking", "was reached", "higher max_tokens", "max_model_length", "sequence length",
				"input token", "per request", "input text", "total context", "上下文", "输入", "request exceeds the maximum size",
				"should be at least", "token limit reached", "requested token count", "context_length", "inputs tokens", "+ max_"},
			when: func(v *view) bool { return !quotaStatus(v) && !negativeOutput(v.text) }},
		{name: "context-text", class: recovery.ContextLengthExceeded, any: contextPhrases(),
			not: []string{"context window too small", "context window is too small", "minimum is", "must be at least 1024", "image dimensions",
				"is temporarily reduced", "per minute", "long context beta", "tool_call_id", "'user'", "'id'", "array too long",
				"expected a string with maximum length", "extra usage is required", "too small", "overloaded"}},
		{name: "context-words", class: recovery.ContextLengthExceeded, any: []string{"|tokens|", "|token|", "token length", "token count",
			"context window", "context length", "context size", "上下文"},
			also: []string{"exceed", "too many", "too long", "too large", "too big", "over the limit", "over the model", "larger than", "more than",
				"longer than", "greater than", "maximum allowed", "not fit", "surpass", "overflow", "is full", "window full", "超", "过长", "过大", "已满"},
			not: notTokens(), when: sized},
		// The words for "too much" are many; two numbers of which the amount is
		// the larger need none.
		{name: "context-numbers", class: recovery.ContextLengthExceeded, any: []string{"|tokens|", "|token|", "|input_tokens|", "|prompt_tokens|"},
			not: notTokens(), when: func(v *view) bool { return sized(v) && outgrown(v) }},
		{name: "context-prose", class: recovery.ContextLengthExceeded, any: []string{"|prompt|", "|conversation|", "|input|",
			"chat history", "|history|", "提示词", "对话", "输入", "消息", "会话", "请求内容"},
			also: []string{"|is too long", "|are too long", "|is too large for", "|are too large for", "|is too big for", "not fit", "过长", "太长", "长度超",
				"超出长度", "超长", "超过长度"},
			not: append(notTokens(), "character", "string", "array", "byte", "字符", "|id|", "name", "tool", "mb|", "kb|", "items"), when: sized},
		{name: "context-long-tier", class: recovery.ContextLengthExceeded, any: []string{"required for long context requests",
			"long context requests over", "extra usage is required for long context"}},
		{name: "context-overflow-negative", class: recovery.ContextLengthExceeded, any: []string{"max_tokens must be at least 1, got -",
			"max_completion_tokens must be at least 1, got -", "max_tokens must be at least 0, got -"}},
		{name: "payload-text", class: recovery.PayloadTooLarge, any: []string{"request entity too large", "payload too large", "content too large",
			"request body too large", "body is too large", "body too large", "request too large", "request size exceeds",
			"request payload size exceeds", "request exceeds the maximum size", "exceeds the maximum size", "exceeds the maximum allowed size",
			"maximum allowed number of bytes",
			"number of bytes", "entity too large",
			"payload size", "request size limit", "body size limit", "length limit exceeded", "exceeded max body", "message larger than max",
			"content length exceeds", "maximum allowed content length", "max content length", "body size exceeds", "requestsize(",
			"larger than max", "body exceeded", "body exceeds", "member must have length less than or equal", "total request size",
			"maximum request size", "max request size", "body length", "string value length", "expected maxlength", "getmaxstringlength", "请求体过大", "请求体太大"},
			not: []string{"token", "context", "image"}, when: not(fieldBreached)},
	}
}

// notTokens are the words that make tokens, and windows, those of something else:
// of a rate, of money, of a login, of the output, of an image.
func notTokens() []string {
	return []string{"per min", "per day", "per hour", "per second", "|rate|", "rate limit", "quota", "balance", "budget", "credit", "api token",
		"access token", "bearer", "auth", "expired", "invalid token", "max_tokens", "max_completion_tokens", "max_output_tokens",
		"maxoutputtokens", "output token", "completion token", "max_new_tokens", "stop token", "logprob", "image", "wait", "throttl",
		"token_", "invalid api", "too small", "at least", "每分钟", "每秒", "额度", "频率", "并发", "限流", "图片", "令牌"}
}

// sized reports a status with which a refusal for size comes.
func sized(v *view) bool {
	return v.Status == 400 || v.Status == 413 || v.Status == 422 || v.Status == 500 || v.Status < 400
}

// outgrown reports that the text states an amount of tokens and a smaller limit.
func outgrown(v *view) bool {
	s := &stated{numbers: make(map[string]int)}
	sizeFacts(v, scanNumbers(v.text), s)
	limit := s.numbers[limitTokens]
	return limit > 0 && max(s.numbers[requestedTokens], s.numbers[inputTokens]) > limit
}

// contextPhrases are the wordings of "the input does not fit the window".
func contextPhrases() []string {
	return []string{
		"maximum context length", "max length exceeded", "cannot truncate to", "max context length", "maximum context limit", "maximum context size",
		"maximum context window",
		"context length exceeded", "context length is only", "context length of", "context_length_exceeded", "context length limit",
		"model's context length", "the context length", "model context length", "exceeds the context", "exceed the context",
		"exceeded the context", "exceeds context", "exceed context", "exceeding the context", "exceeds model context", "exceeds model's context",
		"exceeds the model's context", "exceed the model's context", "exceeds the model context", "exceeds its context", "exceeds maximum context",
		"exceeds max context", "context window exceed", "context window is", "context window limit", "context window of",
		"context window has been exceeded", "context size exceeded", "context size has been exceeded", "available context size",
		"configured context size", "context size of", "context overflow", "context limit", "context budget", "exceed model limit",
		"exceeds model limit", "exceeds the model limit", "context is full", "context full", "too long for context", "context too long",
		"context is too long",
		"prompt is too long", "prompt too long", "prompt is too large", "prompt too large", "prompt exceeds", "prompt has…token",
		"prompt contains…too large", "prompt length", "prompt token count", "maximum prompt length", "max prompt length", "prompt tokens limit",
		"prompt tokens exceed", "tokens in the prompt", "prompt size", "prompt (length", "decoder prompt", "input is too long", "input too long",
		"input is too large", "input length", "input text is too long", "inputs tokens", "input tokens exceed", "input token count",
		"input tokens (", "input tokens limit", "input token limit", "inputs exceed",
		"input exceeds", "input prompt", "input (…token", "input sequence", "number of input tokens", "number of tokens in",
		"number of tokens exceed", "exceeds the maximum number of tokens", "exceeds maximum number of tokens",
		"exceeds the maximum number of input tokens", "maximum number of tokens allowed", "maximum number of input tokens",
		"maximum input tokens", "maximum input length", "maximum allowed input length", "max input tokens", "max input length",
		"max_input_tokens", "maximum tokens allowed", "too many tokens", "too many input tokens", "too many prompt tokens", "token limit",
		"token count exceeds", "token count of", "exceeds the token",
		"exceeds token", "token…exceeds the limit of", "token…exceed the limit of", "input exceeds the limit", "tokens exceeds", "tokens exceed",
		"exceeds max_model_len", "max_model_len", "max_seq_len", "maximum model length", "max model length", "maximum sequence length",
		"max sequence length", "sequence length", "'inputs' tokens", "'inputs' must have", "inputs must have less", "total tokens",
		"total number of tokens", "total token", "total length of", "tokens in request more than", "request tokens", "requested tokens",
		"requested token count", "request exceeds the available", "greater than the context length", "n_ctx", "n_keep", "max_kv_size", "needs…context tokens", "kv cache", "kvcache",
		"larger than the model",
		"longer than the model", "longer than the maximum", "longer than max", "reduce the length of", "reduce the size of", "reduce your prompt",
		"reduce the number of tokens", "reduce your message", "reduce the prompt", "shorten your", "shorten the", "conversation is too long",
		"conversation too long", "messages are too long", "messages too long", "message is too long", "message too long",
		"too long for the model", "too long for this model", "too large for model", "too large for this model", "input data length",
		"range of input length",
		"middle-out", "context shift", "上下文…超", "上下文…过长", "超…上下文", "上下文长度", "上下文过长", "上下文超", "压缩上下文", "超过最大长度", "最大长度", "输入过长", "输入…过长", "输入长度",
		"超过模型", "超出模型", "prompt超长", "提示词过长", "token数…超", "tokens…超", "超…token", "输入…超", "超长", "最大token",
	}
}

// oversizedForWindow reports that one request asks for more tokens than a
// whole window allows.
func oversizedForWindow(v *view) bool {
	limit, requested := tokenAfter(v.text, "limit"), tokenAfter(v.text, "requested")
	if limit > 0 && requested > 0 {
		return requested > limit
	}
	return strings.Contains(v.text, "request too large") || strings.Contains(v.text, "must be reduced")
}

// tokenAfter reads the number after a word, as in "Limit 30000, Requested 61337".
func tokenAfter(text, word string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return 0
		}
		from += i + len(word)
		rest := strings.TrimLeft(text[from:], ": ")
		n, digits := 0, 0
		for _, c := range rest {
			if c == ',' && digits > 0 {
				continue
			}
			if c < '0' || c > '9' || digits > 12 {
				break
			}
			n = n*10 + int(c-'0')
			digits++
		}
		if digits > 0 {
			return n
		}
	}
}

// longContent reports that the over-long string is what is said, not an id.
func longContent(v *view) bool {
	for _, w := range [...]string{"content", "'input'", "instructions", ".output'", ".text'", "'prompt'"} {
		if strings.Contains(v.text, w) {
			return true
		}
	}
	return false
}

// negativeOutput reports that the output limit that a text refuses is below
// zero: nothing is exceeded, and no smaller one helps.
func negativeOutput(text string) bool {
	for _, lead := range [...]string{"value of -", "got -", "given -", "given: -", "received -", "received: -", "passed -", "provided -",
		"provided: -", "(-"} {
		if _, rest, ok := strings.Cut(text, lead); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return true
		}
	}
	return false
}
