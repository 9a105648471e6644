package classify

import (
	"net/http"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// serviceRules recognise troubles of the provider: rates, capacity, time-outs
// and failures; and refusals that name nothing more precise.
func serviceRules() []rule {
	return []rule{
		{name: "overloaded-code", class: recovery.Overloaded, codes: []string{
			"overloaded_error", "overloaded", "engine_overloaded_error", "engine_overloaded", "server_overloaded", "server_is_overloaded",
			"model_overloaded", "ServerOverloaded", "queue_exceeded", "insufficient_system_resource", "service_tier_capacity_exceeded",
			"capacity_exceeded", "ModelNotReadyException", "no_capacity", "NoCapacity", "insufficient_capacity", "model_loading",
			"3505", "1305", "1312", "3040", "SystemOverload",
			"system_busy", "server_busy", "service_busy", "upstream_busy", "model_busy"}},
		{name: "overloaded-unavailable", class: recovery.Overloaded, codes: []string{"ServiceUnavailableException"}, when: func(v *view) bool {
			return v.Status < 400 || v.Status == 429 || v.Status == 503
		}},
		{name: "overloaded-text", class: recovery.Overloaded, any: []string{
			"overloaded", "overload", "degraded function", "at capacity", "over capacity", "out of capacity", "capacity exceeded", "capacity limit",
			"no capacity",
			"insufficient capacity", "lack of capacity", "capacity constraint", "capacity reached", "capacity temporarily", "enough capacity",
			"maximum capacity", "exceeded capacity", "high demand", "heavy load", "high load", "high traffic", "high volume of requests",
			"heavy traffic", "under load", "unusually high", "too busy",
			"server is busy", "server busy", "service is busy", "system is busy", "currently busy", "model is busy", "is busy", "busy now",
			"queue is full", "queue full", "currently loading", "model is loading", "loading model", "still loading", "is starting up",
			"warming up", "not ready", "model unloaded", "no available accounts", "no available workers", "insufficient system resource",
			"worker local total request limit", "no instances available", "scaling up",
			"访问量过大", "繁忙", "负载", "过载", "系统忙", "拥挤", "排队", "算力不足", "资源不足", "temporarily out of", "model unavailable due to capacity",
			"spikes in demand"},
			not: []string{"your account", "rate limit reached for", "load balancer", "concurrent request limit"}},
		{name: "rate-limit-code", class: recovery.RateLimit, codes: []string{
			"rate_limit_exceeded", "rate_limit_error", "rate_limit", "rate_limited", "rate_limit_reached_error", "RateLimitError", "RateLimitReached",
			"too_many_requests", "TooManyRequests", "throttling*", "ThrottlingException", "throttled", "RequestLimitExceeded",
			"REQUEST_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "limit_requests", "limit_burst_rate", "requests", "tokens", "slow_down",
			"RATE_LIMIT_EXCEEDED", "usage_limit_reached", "ServiceQuotaExceededException", "concurrency_limit*",
			"model_cooldown", "user_rate_limited", "UserByMinute", "UserConcurrentRequests", "UserByDay", "RateLimitExceeded", "1302", "1303", "1304",
			"1308", "1313", "1039", "1041", "2045", "LimitExceededException", "too_many_tokens_error", "request_quota_exceeded",
			"token_quota_exceeded", "ModelRateLimit*", "burst_limit*", "request_rate_limit*", "dynamic_request_limited", "dynamic_token_limited"},
			when: func(v *view) bool { return v.Status < 500 || v.Status == 503 }},
		{name: "rate-limit-text", class: recovery.RateLimit, any: []string{
			"rate limit", "rate-limit", "rate_limit", "ratelimit", "rate limited", "too many requests", "too many concurrent", "too many request",
			"too frequent", "request rate", "requests per", "tokens per min", "tokens per day", "tokens per hour", "per minute", "calls / ", "calls per", "throttl",
			"slow down", "concurrent requests", "concurrency limit", "concurrency", "usage limit", "daily limit", "hourly limit", "5-hour",
			"5 hour", "rolling", "cooldown", "cooling down", "request limit", "requests limit", "resource has been exhausted",
			"resource exhausted",
			"resource_exhausted", "rate increased too quickly", "try again tomorrow", "free-models-per", "|rpm|", "|tpm|", "|rpd|", "|tpd|", "|qps|",
			"|rps|", "limit reached", "limit exceeded", "quota exceeded", "reached your…limit", "reached the…limit", "hit your limit",
			"hit the limit", "请求过于频繁", "频率", "速率限制", "限流", "并发", "限速", "请求数限制", "请求次数", "请求太频繁", "过于频繁", "使用上限", "流量限制", "调用次数"},
			when: func(v *view) bool {
				return v.Status == 429 || v.Status < 500 && v.Status != 413 && v.Status != 404 || v.Status == 503
			}},
		{name: "rate-limit-status", class: recovery.RateLimit, status: []int{http.StatusTooManyRequests}},
		{name: "timeout-code", class: recovery.Timeout, codes: []string{"timeout", "request_timeout", "timeout_error", "TimeoutError",
			"DEADLINE_EXCEEDED", "ModelTimeoutException", "gateway_timeout", "GatewayTimeout", "user_request_timeout", "APITimeoutError",
			"upstream_timeout", "RequestTimeout", "idle_timeout", "FUNCTION_INVOCATION_TIMEOUT", "InternalErrorTimeout", "ResponseTimeout",
			"read_timeout", "first_token_timeout", "ETIMEDOUT", "408", "504", "524", "522", "3007"}},
		{name: "timeout-text", class: recovery.Timeout, any: []string{"timed out", "timeout", "time-out", "time out", "deadline exceeded",
			"deadline expired", "didn't respond in time", "did not respond in time", "took too long", "too long to respond", "a timeout occurred",
			"超时", "no response received", "not respond within", "terminal signal within", "no data received within"},
			not: []string{"timeout' is not", "timeout parameter", "invalid timeout"}},
		{name: "unavailable", class: recovery.Overloaded, any: []string{"temporarily unavailable", "temporarily unable", "currently unavailable",
			"service unavailable", "try again later", "unable to process your request", "暂时不可用", "稍后再试", "稍后重试", "请稍后"},
			status: []int{http.StatusServiceUnavailable},
			not: []string{"upstream connect error", "no healthy upstream", "no server is available", "connection refused", "database", "bad gateway",
				"exceeded resource limits"}},
		{name: "server-code", class: recovery.ServerError, codes: []string{"server_error", "internal_server_error", "internal_error",
			"InternalServerException", "InternalFailure", "api_error", "INTERNAL", "InternalServerError", "upstream_error", "bad_gateway",
			"bad_response_status_code", "do_request_failed", "unknown_error", "UNAVAILABLE", "service_unavailable", "ServiceUnavailableError",
			"APIConnectionError", "provider_error", "network_error", "unexpected_error", "ServiceError", "InternalError*", "upstream_unavailable",
			"ModelStreamErrorException", "ModelErrorException", "bad_response_body", "read_response_body_failed", "bad_response", "1234", "1230",
			"1120", "1013", "1024", "1033", "2013_upstream", "ECONNRESET", "ECONNREFUSED", "stream_error", "stream_read_error",
			"connection_error", "internal_stream_error"},
			when: func(v *view) bool { return v.Status >= 500 || v.Status < 400 || v.Status == 424 }},
		{name: "server-text", class: recovery.ServerError, any: []string{"internal server error", "internal error", "server error",
			"server had an error", "error occurred while processing", "bad gateway", "upstream connect error", "upstream error",
			"upstream request failed", "connection reset", "connection refused", "connection error", "network connection lost", "connection closed",
			"socket hang up", "broken pipe", "no healthy upstream", "no server is available", "web server is down", "origin…unreachable",
			"unknown error", "unexpected error", "something went wrong", "fetch failed", "provider returned error", "unable to reach",
			"cuda", "out of memory", "more system memory", "oom", "engine…dead", "engine core", "enginedeaderror", "worker…died", "stream disconnected", "内部错误", "服务器错误",
			"系统错误", "服务异常", "内部异常", "unexpected failure", "内部服务", "网络错误", "服务器内部", "processing stream", "unexpected eof", "incomplete chunked",
			"backend error",
			"exceeded resource limits", "llama runner process", "|crashed|", "model runner has unexpectedly", "no such host"},
			when: func(v *view) bool {
				return v.Status >= 500 || v.Status < 400 || v.Status == 424 || strings.Contains(v.text, " crashed")
			}},
		// What is refused as unsupported, and is none of the things that the rules
		// before this one know, is a feature that the request asks for: whatever
		// somebody does not support, or what is not supported unless it is the model.
		{name: "feature-refused", class: recovery.UnsupportedParameter, status: []int{400, 422}, any: []string{"does not support ", "doesn't support ",
			"do not support ", "not support ", "not be support", "不支持"},
			not: []string{"successive", "consecutive", "prefill", "pre-fill", "alternate", "operation", "endpoint", "method", "model is not support"}},
		{name: "feature-unsupported", class: recovery.UnsupportedParameter, status: []int{400, 422}, any: []string{"not supported", "unsupported",
			"not implemented"},
			not: []string{"successive", "consecutive", "prefill", "pre-fill", "alternate", "|model|", "模型", "operation", "endpoint", "method"}},
		{name: "invalid-request-code", class: recovery.InvalidRequest, codes: []string{"invalid_request_error", "invalid_request", "invalid_argument",
			"INVALID_ARGUMENT", "BadRequestError", "bad_request", "ValidationException", "validation_error", "invalid_parameter*", "invalid_params",
			"invalid_value", "missing", "missing_required_parameter", "UnprocessableEntityError", "FAILED_PRECONDITION", "invalid_prompt", "1210",
			"1213", "1214", "1215", "2013", "20015", "array_above_max_length", "empty_array", "invalid_type", "value_error",
			"invalid_encrypted_content", "wrong_api_format", "INVALID_REQUEST_BODY"},
			when: func(v *view) bool {
				return v.Status != 401 && v.Status != 403 && v.Status != 404 && v.Status != 402 && v.Status != 413 && !(v.Status == 422 && v.empty) && (v.Status < 500 || v.Status == 500)
			}},
	}
}

// statusRules are the last resort: what the status alone says.
func statusRules() []rule {
	by := func(name string, class recovery.Class, status ...int) rule {
		return rule{name: name, class: class, status: status}
	}
	return []rule{
		by("status-auth", recovery.Auth, 401, 407),
		by("status-payment", recovery.QuotaExhausted, 402),
		by("status-forbidden", recovery.Permission, 403, 451),
		by("status-not-found", recovery.ModelNotFound, 404, 410),
		by("status-timeout", recovery.Timeout, 408, 499, 504, 522, 524, 598, 599),
		// Some providers answer an overflow with 413 and nothing else (Cerebras).
		{name: "status-too-large-empty", class: recovery.ContextLengthExceeded, status: []int{413}, when: func(v *view) bool { return v.empty }},
		by("status-too-large", recovery.PayloadTooLarge, 413),
		by("status-media", recovery.ImageOrMediaError, 415),
		// Mistral answers unknown fields with 422 and nothing else.
		{name: "status-unprocessable-empty", class: recovery.UnsupportedParameter, status: []int{422}, when: func(v *view) bool { return v.empty }},
		{name: "status-bad-request-empty", class: recovery.Unknown, status: []int{400}, when: func(v *view) bool { return v.empty || v.bare }},
		by("status-rate-limit", recovery.RateLimit, 429, 425),
		{name: "status-unavailable-page", class: recovery.ServerError, status: []int{503}, when: func(v *view) bool { return v.html }},
		by("status-overloaded", recovery.Overloaded, 503, 529),
		{name: "status-client-error", class: recovery.InvalidRequest, when: func(v *view) bool { return v.Status >= 400 && v.Status < 500 }},
		{name: "status-server-error", class: recovery.ServerError, when: func(v *view) bool { return v.Status >= 500 }},
		{name: "stream-error-event", class: recovery.ServerError, when: func(v *view) bool { return v.Stream && len(v.texts)+len(v.codes) > 0 }},
	}
}
