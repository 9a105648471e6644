package classify

import (
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// accountRules recognise what is wrong with the credential: money, then
// identity, then rights. They come before sizes, because "too many tokens" and
// "limit exceeded" are said of accounts too.
func accountRules() []rule {
	return []rule{
		// Throttles count tokens too. One request that alone exceeds the
		// allowance is the exception: waiting never helps it.
		{name: "tokens-per-minute-oversize", class: recovery.ContextLengthExceeded, any: []string{"request too large for", "request too large",
			"requested"}, also: []string{"|tpm|", "tokens per min", "tokens per minute", "|tpd|", "tokens per day"}, when: oversizedForWindow},
		// A named window is a rate, whatever the advice after it says of billing.
		{name: "rate-limit-window", class: recovery.RateLimit, any: []string{"rate limit reached for", "rate limit exceeded for",
			"rate limit is exceeded", "exceeded the rate limit", "exceeded your rate limit", "rate limit of", "would exceed the rate limit"},
			also: []string{"per min", "per day", "per hour", "per second", "(rpm)", "(rpd)", "(tpm)", "(tpd)", "|rpm|", "|rpd|", "|tpm|", "|tpd|",
				"requests per", "tokens per"}, not: []string{"free-models"}},
		// A wait of this length, or of months, is an allowance that is gone.
		{name: "quota-window-long", class: recovery.QuotaExhausted, any: []string{
			"weekly/monthly limit", "weekly limit", "monthly limit", "monthly quota", "monthly usage", "monthly request", "monthly token",
			"monthly spend", "monthly budget", "monthly included credits", "monthly allowance",
			"per month", "/ month", "/month", "week allocated quota", "month allocated quota", "每周/每月", "每月", "每周", "本月", "weekly usage limit",
			"weekly quota", "usage limit for this month", "lifetime"},
			not: []string{"per minute", "per second"}, when: func(v *view) bool { return deniedForNow(v) && !v.endsSoon() }},
		{name: "quota-free-daily", class: recovery.QuotaExhausted, any: []string{"free-models-per-day", "free…requests per day", "free…per day",
			"free daily", "daily free"},
			when: func(v *view) bool {
				_, soon := textWait(v.text, v.hints.now)
				return !soon && !v.has([]string{"resourceexhausted"})
			}},
		{name: "permission-region", class: recovery.Permission, codes: nil, any: []string{
			"country, region, or territory", "not available in your country", "not available in your region", "not supported in your region",
			"not supported in your country", "location is not supported", "unsupported country", "unsupported_country"}},
		{name: "quota-code", class: recovery.QuotaExhausted, codes: []string{
			"insufficient_quota", "insufficient_user_quota", "insufficient_balance", "insufficient_credits", "insufficient_funds",
			"insufficient_token_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "billing_limit*", "budget_exceeded",
			"BudgetExceededError",
			"exceeded_current_quota_error", "exceeded_quota", "quota_exhausted", "QuotaExhausted", "credit_balance*", "*credits_exhausted", "*credit_exhausted",
			"credits_required", "credit_required", "usage_not_included", "out_of_credits", "no_credits", "payment_required", "PaymentRequired",
			"arrearage", "PrepaidBillOverdue", "PostpaidBillOverdue",
			"AllocationQuotaFreeTierOnly", "AccountOverdue*", "account_overdue", "overdue_balance", "pre_consume_token_quota_failed",
			"project_spend_limit_exceeded", "spend_limit*", "spending_limit*", "usage_limit_exceeded_permanent", "token_quota_reached", "1113",
			"1309", "1008", "2056",
			"OVERAGE_REQUEST_LIMIT_EXCEEDED", "MONTHLY_REQUEST*", "balance_depleted", "balance_not_enough", "not_enough_balance",
			"QuotaExceededForMonth", "prepaid*", "30001", "30011", "SetLimitExceeded", "model_not_supported_on_free_tier"},
			when: func(v *view) bool {
				return !v.has([]string{"quotaexhausted", "exceededquota", "prepaid*"}) || !transient(v)
			}},
		{name: "quota-text", class: recovery.QuotaExhausted, any: quotaPhrases(), not: []string{"context window", "context length"},
			when: func(v *view) bool { return !transient(v) && v.Status != 404 }},
		{name: "quota-free-tier", class: recovery.QuotaExhausted, any: []string{"not available on the free tier", "requires available credits",
			"account balance is too low", "free tier…exhausted", "limit: 0,", "limit: 0.", "limit: 0 ", "n't have a free", "not have a free",
			"no free quota", "no free tier"},
			not: []string{"per minute per"}, when: deniedForNow},
		{name: "quota-words", class: recovery.QuotaExhausted, any: []string{"|budget|", "|credit|", "|credits|", "|balance|", "|billing|",
			"|payment|", "|subscription|", "|funds|", "|wallet|", "|prepaid|", "spending", "|key| limit", "余额", "额度", "套餐", "订阅", "账单"},
			also: []string{"exceed", "exhaust", "insufficient", "not enough", "deplet", "reached", "expired", "has ended", "required", "too low",
				"used up", "negative", "no longer active", "inactive", "renew", "lapsed", "overdrawn", "不足", "用完", "用尽", "耗尽", "到期", "过期", "已达"},
			not: []string{"budget_tokens", "budget tokens", "thinking budget", "token budget", "thinking_budget", "context", "subscription key",
				"rate limit", "time window", "parameter", "permission", "schema"},
			when: func(v *view) bool {
				return !namesWindow(v.text) && !transient(v) && (v.Status == 429 || v.Status == 402 || v.Status == 403 || v.Status < 400 ||
					v.Status == 400 && !strings.Contains(v.text, "'"))
			}},
		{name: "permission-model-access", class: recovery.Permission, codes: []string{"*_model_access_denied", "model_permission_blocked*"}},
		{name: "permission-iam", class: recovery.Permission, any: []string{"not authorized to perform", "model access is denied",
			"not allowed to use", "not permitted to use", "use case details have not been submitted",
			"not allowed to access", "not authorized to access", "ip address is not", "permission denied on", "does not have permission to", "operation not allowed"}},
		{name: "permission-plan", class: recovery.Permission, any: []string{"not available in your…tier", "not available in your…plan",
			"not available on your…tier", "not available on your…plan", "not available for your…plan", "not available for your…tier",
			"not included in your", "not allowed for this account", "not allowed for your", "not allowed for this organization",
			"not allowed for this project", "not available for this api key", "not available for this key", "not available for your api key",
			"blocked at the organization", "blocked at the project", "not enabled for this account", "not available for your account",
			"令牌无权", "无权使用"},
			when: func(v *view) bool { return v.Status == 400 || v.Status == 401 || v.Status == 403 || v.Status == 404 }},
		{name: "auth-code", class: recovery.Auth, codes: []string{
			"invalid_api_key", "API_KEY_INVALID", "incorrect_api_key_error", "invalid_authentication_error", "authentication_error", "auth_error",
			"authentication_failed", "AuthFailure*", "UNAUTHENTICATED", "unauthorized", "UnauthorizedError", "not_authenticated", "invalid_token",
			"token_expired", "expired_token",
			"ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignature", "MissingAuthenticationToken*",
			"InvalidClientTokenId", "missing_api_key", "no_api_key", "account_deactivated", "invalid_credentials", "invalid_key", "key_not_found",
			"api_key_expired",
			"ACCESS_TOKEN_EXPIRED", "ACCESS_TOKEN_TYPE_UNSUPPORTED", "invalid_auth*", "AuthenticationFailed", "InvalidApiKey", "1000", "1001", "1002",
			"1003", "1004", "token_revoked", "session_expired", "authentication_token_expired", "invalid_access_token", "login_required",
			"invalid_organization", "BXNIM0415E"},
			when: func(v *view) bool { return (v.Status != 429 && v.Status != 500) && !numericMinimax(v) }},
		{name: "auth-text", class: recovery.Auth, any: []string{
			"api key not valid", "invalid subscription key", "invalid api key", "invalid api-key", "invalid apikey", "incorrect api key",
			"invalid x-api-key", "api key is invalid", "api key…invalid", "api key is missing", "api key…expired", "api key…revoked",
			"api key…disabled", "api key…deactivated", "api key…not found", "key has been disabled", "key has been revoked",
			"key is disabled", "no api key", "missing api key", "provide an api key", "provide your api key", "api key provided", "api key required",
			"api key is required", "invalid authentication", "authentication fails", "authentication failed", "authentication error",
			"failed to authenticate", "authentication required", "authentication token", "no auth credentials",
			"missing authentication", "missing authorization", "authorization header", "invalid bearer", "bearer token", "invalid token",
			"token is invalid", "token has expired", "token is expired", "token expired", "expired token", "invalid access token",
			"access token…expired", "security token included in the request", "signature does not match", "could not validate credentials",
			"invalid credentials", "credentials…invalid",
			"invalid username or password", "oauth token", "not authenticated", "unauthenticated", "user not found", "account has been deactivated",
			"account has been disabled", "account is disabled", "re-authenticate", "无效的令牌", "令牌已过期", "令牌状态不可用", "该令牌", "无效的api", "密钥无效", "密钥非法",
			"身份验证", "鉴权失败", "认证失败", "未授权", "未提供令牌", "api key错误", "令牌验证", "invalid organization", "unregistered callers", "login fail", "please carry the api secret key"},
			not: []string{"quota", "rate limit", "额度", "does not have access to model", "not have permission", "insufficient permission",
				"context length", "|model|", "scope"},
			when: func(v *view) bool { return v.Status < 500 && v.Status != 429 }},
		{name: "auth-text-401", class: recovery.Auth, status: []int{401}, not: []string{"quota", "balance", "credit", "额度", "余额", "permission",
			"only available to",
			"not have access", "无权", "权限"}},
		// What is missing is something the request refers to.
		{name: "reference-missing", class: recovery.InvalidRequest, any: []string{"item with id", "response with id", "previous response",
			"conversation with id", "file with id", "no such file", "vector store with id", "assistant with id", "thread with id"},
			also: []string{"not found", "does not exist", "no such"}, status: []int{400, 404}},
		{name: "model-missing-code", class: recovery.ModelNotFound, codes: []string{
			"model_not_found", "model_not_exist*", "model_decommissioned", "model_deprecated", "DeploymentNotFound", "unknown_model",
			"model_not_supported", "model_not_available", "ModelNotOpen", "InvalidEndpointOrModelNotFound", "ModelNotFound*",
			"model_unavailable_permanently", "unsupported_model", "invalid_model", "invalid_model_error",
			"no_such_model", "ModelNotSupported", "model_invalid", "1211", "1221", "1222", "ModelNotReadyForPlan", "OperationNotSupported",
			"NoSuchModel", "model_not_accessible", "model_removed", "20012", "not_found_model", "ENDPOINT_NOT_FOUND", "NOT_FOUND",
			"resource_not_found_error"},
			when: func(v *view) bool {
				return !strings.Contains(v.text, "data policy") && !strings.Contains(v.text, "must be verified") &&
					!strings.Contains(v.text, "no permission")
			}},
		{name: "model-missing-plain", class: recovery.ModelNotFound, any: []string{"|model|…does not exist", "|model|…not found",
			"|model|…decommissioned", "|model|…been retired", "no such model", "not a valid model", "unknown model", "invalid model name",
			"|model|…requires a newer version"},
			not: []string{"parameter", "permission", "rate limit", "overloaded", "tool_choice", "not authorized", "tool", "image", "data policy",
				"busy", "capacity"}},
		{name: "model-missing-text", class: recovery.ModelNotFound, any: []string{
			"|model|…not found", "|model|…does not exist", "no model named", "no model with", "no endpoints available", "no endpoint available", "未知模型",
			"未知的模型", "模型名称…正确", "模型名称错误", "|model|…do not exist", "|model|…doesn't exist", "|model|…not exist", "no such model",
			"no 'model_name' with this string", "unknown model", "invalid model", "not a valid model", "|model|…decommissioned",
			"|model|…been retired", "|model|…deprecated", "|model|…discontinued", "|model|…no longer available", "|model|…no longer supported",
			"model not supported", "|model|…is not supported", "|model|…is not available", "|model|…unavailable for", "unsupported model",
			"model identifier is invalid", "model…not available in", "|model|…not accessible", "non-serverless model", "unable to access…model",
			"no available channel", "no channel available", "no endpoints found", "no allowed providers", "on-demand throughput",
			"try pulling it first",
			"not found for api version", "publisher model", "deployment for this resource does not exist", "deployment…does not exist",
			"deployment…not found", "could not find model", "cannot find model", "model name…incorrect", "model name…invalid",
			"model isn't available", "model…is not deployed", "not a chat model", "model…marked by provider as legacy", "end of its life",
			"model…not loaded", "no models loaded",
			"model_not_found", "model: claude", "no deployments…for", "is not a supported model", "there are no healthy deployments", "模型不存在",
			"无可用渠道", "模型…不存在", "模型…下线", "模型…未找到", "不支持的模型", "不支持该模型", "模型…未开通", "无权限访问该模型", "无权访问模型", "没有可用的渠道", "model is disabled", "model disabled",
			"model…requires…endpoint", "has not activated the model", "inference profile",
			"model…is not permitted", "task type", "not supported by any provider", "no provider…model", "model…not enabled",
			"supported api model names are", "|model|…not support endpoint", "not support chat|", "not support embedding", "not support completion", "not support generate|",
			"llm provider not provided", "not support the endpoint",
			"model has no "},
			not: []string{"not supported in your", "support image", "data policy", "guardrail", "privacy", "is not supported with this", "parameter",
				"rate limit", "high demand", "please try again later", "temporarily unavailable", "currently unavailable", "overloaded", "permission",
				"tool_choice", "image input",
				"context length", "context window", "try again", "'temperature'", "max_tokens", "response_format", "reasoning_effort", "service_tier",
				"requires terms", "not authorized", "chat template"}},
		{name: "permission-code", class: recovery.Permission, codes: []string{
			"permission_denied", "permission_error", "permissions_error", "PermissionDeniedError", "permission_denied_error", "forbidden", "access_denied", "AccessDenied",
			"AccessDeniedException", "access_forbidden", "unsupported_country_region_territory", "request_forbidden", "insufficient_permissions",
			"insufficient_scope", "IAM_PERMISSION_DENIED", "not_authorized",
			"CONSUMER_INVALID", "SERVICE_DISABLED", "PERMISSION_DENIED", "AccessDeniedUnpurchased", "EndpointAccessDenied", "ModelAccessDenied",
			"1220", "1311", "ip_not_authorized", "mismatched_organization", "missing_scope", "USER_PROJECT_DENIED", "feature_not_available",
			"OptInRequired", "organization_restricted", "model_terms_required", "region_not_supported", "organization_disabled", "1112", "1121",
			"1110"},
			when: func(v *view) bool { return v.Status != 429 && v.Status != 404 && v.Status < 500 }},
		{name: "permission-text", class: recovery.Permission, any: []string{
			"permission denied", "permission", "not authorized to", "not authorised to", "is not authorized", "do not have access",
			"does not have access", "don't have access", "doesn't have access", "access denied", "access to model denied", "not allowed to",
			"country, region, or territory", "not available in your country", "not available in your region", "location is not supported",
			"unsupported country", "data policy",
			"privacy settings", "guardrail restrictions", "must be verified", "been restricted", "organization has been disabled", "not enabled for your",
			"insufficient scope", "missing scopes", "only authorized for use with", "has not been used in project", "it is disabled",
			"access to this model", "gated", "terms", "plan does not", "subscription does not", "not included in your plan", "upgrade to access",
			"ip address", "not permitted to", "blocked by your organization", "allowlist", "not eligible",
			"model access is denied", "无权", "没有权限", "权限不足", "无权限", "禁止访问", "not have the required", "only available for", "only available to", "only allows",
			"is not enabled for", "long context beta is not yet available"},
			when: func(v *view) bool { return v.Status == 403 || v.Status == 401 || v.Status == 400 || v.Status == 404 }},
	}
}

// quotaPhrases are the wordings of money and allowances that are gone.
func quotaPhrases() []string {
	return []string{
		"insufficient…balance", "insufficient…credit", "insufficient…fund", "insufficient…quota", "insufficient account", "balance…insufficient",
		"balance is not enough", "balance not enough", "not enough balance", "not enough credit", "not enough quota", "no balance",
		"negative balance", "balance is too low", "balance too low", "account balance", "credit balance", "credit limit", "prepaid credits",
		"prepayment",
		"requires more credits", "require more credits", "requires credits", "credits…exhausted", "credits…depleted", "credit…depleted",
		"out of credits", "out of funds", "out of…usage", "used all available credits", "used all of your", "no usable credits", "no credits",
		"any credits", "have no quota",
		"no remaining credits", "credits remaining", "run out of", "ran out of", "used up your", "used up all", "has been used up",
		"purchase…credits", "buy…credits", "add credits", "add more credits", "add funds",
		"exceeded your current quota", "exceeded current quota", "exceeded your quota", "exceeded the quota", "exceeded its quota",
		"quota exceeded", "reached your quota", "reached the quota", "quota reached", "key limit exceeded", "total limit",
		"quota has been exceeded", "quota exhausted", "quota has been exhausted", "quota is exhausted", "quota is not enough", "quota limit", "key with a higher",
		"quota will reset", "quota…used up", "exhausted your", "exhausted…quota", "exhausted…capacity", "free allocated quota",
		"workspace allocated quota", "allocated quota exhausted", "entitlement exhausted",
		"billing hard limit", "billing details", "billing period", "billing account", "billing is not", "billing to be enabled", "enable billing",
		"no active subscription", "needs an active subscription", "payment required", "payment method", "past due", "overdue", "unpaid",
		"in good standing", "arrears", "arrearage", "top up", "top-up", "topup", "recharge", "spend limit", "spending limit", "spending cap",
		"spend cap", "spend…limit reached", "usage cap", "usage limit", "usage limits",
		"budget has been exceeded", "budget exceeded", "exceeded budget", "exceeds budget", "over budget", "crossed budget", "max budget",
		"exceeded…budget", "premium request", "free credits", "free trial", "trial…expired", "trial…ended", "subscription…expired",
		"subscription quota", "plan…expired", "daily free allocation", "from your extra usage", "not your plan limits", "free quota", "free usage", "upgrade your plan", "upgrade to a paid",
		"paid plan", "paid account",
		"余额不足", "额度不足", "额度已用", "额度用尽", "额度已耗尽", "额度已达", "欠费", "充值", "配额不足", "配额已用", "配额已用尽", "配额用尽", "超出配额", "免费额度", "预扣费额度失败", "预扣费", "令牌额度",
		"账户已用完", "余额已", "套餐已到期", "套餐已过期", "已过期…续订", "资源包", "使用上限",
	}
}

// deniedForNow reports that the answer is one that accounts get.
func deniedForNow(v *view) bool {
	return v.Status == 429 || v.Status == 403 || v.Status == 402 || v.Status == 400 || v.Status < 400 || v.Status == 404 || v.Status == 401
}

// transient reports that a text about quotas describes throttling: it names a
// short window, promises an early reset, or comes from a provider whose word
// for a rate limit is quota.
func transient(v *view) bool {
	if v.has([]string{"insufficientquota", "insufficientbalance", "insufficientuserquota", "exceededcurrentquota", "budgetexceeded", "1113",
		"arrearage", "paymentrequired", "billinghardlimitreached"}) {
		return false
	}
	// OpenAI's sentence, which Google sends about windows too.
	if strings.Contains(v.text, "exceeded your current quota") && !v.has([]string{"resourceexhausted"}) && !namesWindow(v.text) {
		return v.endsSoon()
	}
	for _, money := range []string{"credit", "balance", "余额", "欠费", "充值", "recharge", "payment", "spending", "budget", "limit: 0,", "limit: 0 ",
		"free tier of the model", "free allocated", "overdue", "top up"} {
		if strings.Contains(v.text, money) {
			return false
		}
	}
	if namesWindow(v.text) {
		return true
	}
	for _, w := range [...]string{"too many requests", "try again later", "please wait", "slow down", "resource has been exhausted",
		"resource exhausted"} {
		if strings.Contains(v.text, w) {
			return true
		}
	}
	if v.has([]string{"resourceexhausted", "throttling*", "ratelimitexceeded", "ratelimit", "ratelimited", "toomanyrequests",
		"servicequotaexceeded"}) {
		return true
	}
	return v.endsSoon()
}

// soon is the longest wait that is still a window and not an allowance that is
// gone: plans have windows of five hours, and of a day and more.
const soon = 12 * time.Hour

// endsSoon reports that the answer promises an early end of the refusal.
func (v *view) endsSoon() bool {
	for _, w := range [...]string{"5 hour", "5-hour", "5小时", "rolling", "time window", "hour window"} {
		if strings.Contains(v.text, w) {
			return true
		}
	}
	if d, ok := textWait(v.text, v.hints.now); ok && d < soon {
		return true
	}
	if d, ok := longest(v.hints.body); ok && d < soon {
		return true
	}
	d, ok := v.hints.explicit()
	return ok && d > 0 && d < soon
}

// namesWindow reports that a text speaks of a limit per second, minute, hour or day.
func namesWindow(text string) bool {
	for _, w := range [...]string{"per min", "per-min", "perminute", "/min", "per second", "persecond", "per hour", "hourly", "per day", "per-day",
		"perday", "每分钟", "每秒", "每小时",
		"tokens per d", "requests per d", "rate limit", "concurren"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	for _, w := range [...]string{"rpm", "tpm", "rpd", "tpd", "qps", "rps"} {
		if i, _ := (part{text: w, left: true, right: true}).find(text, 0); i >= 0 {
			return true
		}
	}
	return false
}

// numericMinimax reports the envelope whose numbers collide with Zhipu's.
func numericMinimax(v *view) bool {
	return strings.Contains(v.text, "rate limit") || strings.Contains(v.text, "timeout") || strings.Contains(v.text,
		"unknown error") || strings.Contains(v.text, "tpm")
}
