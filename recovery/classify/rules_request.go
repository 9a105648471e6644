package classify

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// modelRules recognise refusals of what the model wrote, and of attachments:
// their wording borrows from every other class, so they come first.
func modelRules() []rule {
	return []rule{
		// Wrappers of the one-api family put wrong codes on a saturated group (one-api#330).
		{name: "group-saturated", class: recovery.Overloaded, any: []string{"负载已饱和", "负载已经达到上限", "上游负载", "当前负载过高", "负载较高", "服务过载"}},
		{name: "model-output-code", class: recovery.ModelOutputInvalid, codes: []string{
			"tool_use_failed", "json_validate_failed", "output_parse_failed", "malformed_function_call", "invalid_model_output",
			"unexpected_tool_call", "too_many_tool_calls", "missing_thought_signature_output", "tool_call_parse_error"}},
		{name: "model-output-text", class: recovery.ModelOutputInvalid, any: []string{
			"failed to call a function", "failed to validate json", "failed_generation", "tool call validation failed", "failed to parse tool call",
			"parsing failed. the model generated output", "model produced invalid content", "model generated invalid", "model output must contain",
			"invalid tool call arguments generated", "tool choice is required, but model did not call a tool", "model did not call a tool",
			"model called a tool…not in request", "attempted to call tool…which was not in request", "malformed_function_call",
			"model returned invalid json", "could not parse the model's output", "error parsing tool call", "failed to parse the model output",
			"model failed to generate a valid", "the model produced invalid"},
			not: []string{"chat template"}},
		{name: "media-code", class: recovery.ImageOrMediaError, codes: []string{
			"image_parse_error", "invalid_image*", "image_too_large", "image_too_small", "image_content_policy", "unsupported_image*",
			"image_file_too_large",
			"invalid_base64_image", "empty_image_file", "failed_to_download_image", "image_download*", "image_decode*",
			"unsupported_content_type_image",
			"InvalidImageURL", "image_url_download*", "InvalidMedia*", "unsupported_media*", "invalid_audio*", "media_not_supported"}},
		{name: "media-text", class: recovery.ImageOrMediaError, any: []string{
			"image dimensions", "image exceeds", "image size", "image_url", "could not process image", "unable to process input image",
			"process image",
			"support image", "supports image", "image input", "images are not supported", "image is not supported", "not support images",
			"vision is not supported",
			"not support vision", "does not support multimodal", "not a multimodal model", "is not a multimodal", "image format", "image type",
			"image media type",
			"image data", "image file", "invalid image", "unsupported image", "image.source", "image…too large", "number of images", "image count",
			"image limit", "too many images",
			"image(s) may be provided", "images may be provided", "at most…image", "download…image", "download image", "download…media",
			"download…multimodal",
			"fetch image", "fetching image", "decode image", "base64 image", "image(s)", "|pdf|…page", "|pdf| pages", "pdf pages", "pdf…encrypted",
			"pdf…password",
			"valid pdf", "the pdf", "pdf.source", "pdf specified", "document.source", "could not process pdf", "unsupported mime type",
			"unsupported mimetype", "media type…not supported", "media_type", "unsupported file type",
			"unsupported file uri", "input_audio", "audio format", "audio input", "audio is not supported", "invalid audio", "video input",
			"|image|…not supported",
			"图片", "图像", "多模态", "multimodal data", "multimodal input", "mmproj", "|image|…unsupported", "content type…image",
			"exceeds the maximum…pixels", "unsupported…|image|",
			"base64 encoded image", "cannot identify image", "image url", "vision model"},
			not: []string{"safety system", "content policy", "usage polic", "context length", "context size", "token count", "moderation"}},
	}
}

// requestRules recognise refusals of the form of a request.
func requestRules() []rule {
	return []rule{
		{name: "media-words", class: recovery.ImageOrMediaError, any: []string{"|image|", "|images|", "|audio|", "|video|", "|pdf|", "|attachment|",
			"|attachments|"},
			also: []string{"invalid", "unsupported", "not support", "not valid", "unable to", "could not", "cannot", "failed to", "too large",
				"too small", "exceeds", "must be", "may be provided", "not allowed", "corrupt", "missing", "decode", "download"},
			not: []string{"token", "tool_", "'tool", "safety", "policy", "policies", "sensitive", "moderation", "schema", "rate limit", "quota",
				"api key", "model", "context", "account", "credit", "balance", "billing"},
			when: func(v *view) bool { return v.Status == 400 || v.Status == 415 || v.Status == 422 }},
		{name: "tool-pairing", class: recovery.ToolPairing, any: []string{
			"tool_use' ids were found without", "tool_use ids were found without", "unexpected 'tool_use_id' found", "unexpected tool_use_id found",
			"tool_use' ids must be unique", "tool_use ids must be unique", "must have a corresponding 'tool_use",
			"must have a corresponding tool_use",
			"must have a corresponding 'tool_result'", "multiple 'tool_result' blocks", "multiple tool_result blocks",
			"each tool_use must have a single result",
			"did not find…tool_result block", "tool_result block(s)", "tool_use blocks must begin", "'tool_calls' must be followed",
			"tool_calls must be followed",
			"did not have response messages", "did not have responses", "role 'tool' must be a response to a prec",
			"must be a response to a preceding message with 'tool_calls'",
			"must be a response to a preceeding message", "preceding message with tool_calls", "preceding tool_call", "tool message must follow",
			"tool messages must follow",
			"tool must follow", "no tool output found for function call", "no tool call found for function call", "no tool call found for",
			"no tool output found",
			"function_call_output…no…function_call", "number of function response parts", "number of function call parts",
			"function response turn comes immediately after",
			"function call turn comes immediately after", "function response…function call turn", "thought_signature", "thought signature",
			"not the same number of function calls and responses",
			"same number of function calls", "toolresult blocks", "tooluse blocks", "'toolresult'", "'tooluse'", "toolresult…tooluse",
			"tooluse…toolresult", "toolconfig field must be defined",
			"toolresult cannot be empty", "tooluse.", "toolresult.", "unexpected role roleenum.tool", "unexpected role 'tool'",
			"unexpected role tool", "after role 'tool'", "after role tool", "role 'user' after role 'tool'",
			"tool_call_id…not found", "tool_call_id…not match", "tool call id…not found", "tool_call_id  is not found", "tool_call_id is required",
			"tool result's tool id", "tool id…not found", "tool_call_id…missing",
			"missing 'tool_call_id'", "missing tool_call_id", "messages.tool_call_id", "missing parameter 'tool_call_id'",
			"tool call result does not follow tool call", "tool result does not follow",
			"tool result…not follow", "tool result's", "tool result must", "orphan…tool", "unanswered tool", "tool call…without…result",
			"tool_calls…without…tool", "tool message…without", "tool messages…without",
			"without a preceding tool call", "no corresponding tool", "corresponding tool_call", "corresponding tool call",
			"corresponding 'tool_call", "unmatched tool", "duplicate tool_call", "duplicate tool call",
			"duplicate value for 'tool_call_id'", "duplicate tool_call_id", "duplicate tool result", "duplicate item found with id",
			"without its required following item", "without its required 'reasoning' item", "was provided without its required",
			"not the same number of function", "insufficient tool messages", "expected…tool messages", "tool messages…tool calls",
			"tool_calls…tool messages", "tool_use…tool_result", "tool_result…tool_use", "工具调用…结果", "tool_call_ids did not",
			"without any tool calls", "unexpected tool call id", "tool call id has to be defined", "tool call id was…but must be",
			"tool_call_id…too long", "call_id…too long",
			"does not have tool calls", "last message…tool_calls", "assistant message with tool_calls", "message with role 'tool'",
			"messages with role 'tool'", "tool_result' block", "'tool_use' block", "invalid 'messages' tool", "toolresult…status"},
			not: []string{"invalid schema", "input_schema", "tool_choice", "expected 'thinking'", "start with a thinking block"}},
		{name: "tool-pairing-words", class: recovery.ToolPairing, any: []string{"tool_call_id", "tool_call", "tool_use", "tool_result", "tool result",
			"tool response", "tool message", "tool output", "function response", "functionresponse", "function_call_output", "role 'tool'",
			"role: tool", "role tool", "role=tool"},
			also: []string{"missing", "without", "no corresponding", "not match", "mismatch", "must be followed", "preced", "orphan", "unexpected",
				"duplicate", "not found", "paired", "respond to", "follow", "unmatched", "does not correspond"},
			not: []string{"schema", "tool_choice", "parser", "generated", "failed to", "not supported", "unsupported", "thinking",
				"reasoning_content", "extra inputs"},
			when: func(v *view) bool { return v.Status == 400 || v.Status == 422 }},
		{name: "tool-schema-code", class: recovery.InvalidToolSchema, codes: []string{"invalid_function_parameters", "invalid_tool_schema",
			"invalid_function_schema", "invalid_tool_parameters"}},
		{name: "tool-schema-text", class: recovery.InvalidToolSchema, any: []string{
			"invalid schema for function", "invalid schema for tool", "schema for function", "input_schema", "function_declarations",
			"functiondeclaration", "function declaration", "parameters schema",
			"tools[…parameters", "tools.…parameters", "tools…json schema", "tool…json schema", "tools…inputschema", "inputschema",
			"json_schema_to_grammar", "json schema to grammar", "json-schema-to-grammar",
			"failed to parse grammar", "error parsing grammar", "parse grammar", "grammar error", "unsupported schema", "schema…unsupported",
			"unrecognized schema", "schema is invalid", "invalid json schema", "json schema is invalid",
			"schema…too complex", "schema…too many states", "compiled grammar is too large", "too many states for serving", "strict tools",
			"function.parameters", "tool parameters schema", "tool schema", "function schema", "propertyordering",
			"tools…schema", "schema…tools", "exclusiveminimum", "'$ref'", "'$defs'", "additionalproperties' is required",
			"moonshot flavored json schema", "flavored json schema", "tool parameters", "parameters is not a valid…schema",
			"schema did not match", "unresolvable…ref"},
			not: []string{"response_format", "response schema", "response_schema", "extra inputs are not permitted…strict",
				"json_schema' is not supported", "generationconfig", "does not support tools", "output_config", "does not support json schema",
				"does not support 'json_schema'", "responseschema"}},
		{name: "tool-schema-param", class: recovery.InvalidToolSchema, when: func(v *view) bool {
			return refersToTool(v) && v.Status < 500 && !strings.Contains(v.text, "extra inputs") && !strings.Contains(v.text,
				"unknown parameter") && !strings.Contains(v.text, "unsupported")
		}},
		{name: "content-policy-code", class: recovery.ContentPolicy, codes: []string{
			"content_policy_violation", "content_filter", "ResponsibleAIPolicyViolation", "content_filtered", "content_policy",
			"data_inspection_failed", "DataInspectionFailed", "ContentPolicyViolationError",
			"1301", "sensitive_content*", "input_sensitive", "output_sensitive", "1026", "1027", "content_moderation", "moderation",
			"moderation_blocked", "safety_violation", "prompt_blocked", "PROHIBITED_CONTENT",
			"guardrail_intervened", "SensitiveContentDetected", "InputTextSensitiveContentDetected", "OutputTextSensitiveContentDetected",
			"violation_fee*", "policy_violation", "cyber_policy*", "content_blocked", "bio_policy*", "refusal"},
			when: not(quotaStatus)},
		{name: "content-policy-text", class: recovery.ContentPolicy, any: []string{
			"content filter", "content_filter", "content management policy", "content policy", "content policies", "usage policies", "usage policy",
			"usage guidelines", "safety system", "safety filter", "safety reasons",
			"due to safety", "flagged by", "flagged as", "was flagged", "has been flagged", "flagged for", "flagged by moderation",
			"requires moderation", "inappropriate content", "sensitive content", "sensitive information", "new_sensitive",
			"content exists risk", "content violat", "violates…policy", "violates…policies", "violat…guidelines", "acceptable use", "harmful content",
			"prohibited content", "prohibited_content", "blocked by…guardrail", "content moderation", "moderation…block", "moderation…reject",
			"敏感内容", "不安全或敏感", "敏感信息", "敏感词", "内容审核", "内容安全", "违规", "违反…规定", "不当内容", "responsible ai", "blocked by our", "prompt was blocked",
			"response was blocked", "blocked for reason", "blocked…safety", "blocked…policy", "blocked…filter", "rejected…safety",
			"rejected…policy", "reason: safety", "blocked due to", "content is blocked", "high risk", "considered high risk",
			"cybersecurity risk", "trusted access for cyber", "blocked by content", "csam", "unsafe content", "input_moderation",
			"refused by the safety", "output blocked", "safety check", "safety violations", "request was rejected as a result of",
			"fails…safety"},
			not: []string{"rate limit", "data policy", "privacy", "quota", "fair usage", "fair use", "公平使用", "频率", "账号", "账户"}},
		{name: "parameter-code", class: recovery.UnsupportedParameter, codes: []string{
			"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden", "unsupported_param*", "unsupportedparams*",
			"unknown_field", "unrecognized_parameter", "unsupported_argument", "parameter_unsupported", "NotSupport*",
			"InvalidParameterNotSupport*", "unsupported_option", "extraneous_key", "additional_properties", "property_unsupported"},
			not: []string{"context length", "maximum context"}, when: not(modelMissing)},
		{name: "parameter-text", class: recovery.UnsupportedParameter, any: parameterPhrases(),
			not: []string{"request payload size", "model is not supported", "country, region", "region is not supported", "not supported in your",
				"location is not supported", "unsupported country", "model not supported", "this api", "model does not support chat",
				"not supported in the v1/", "no endpoints found", "not a chat model", "did you mean to use", "supported in v1",
				"plan does not support", "only supported in v1", "on-demand throughput", "model field"},
			when: func(v *view) bool { return !modelMissing(v) && !outputLimit(v) && v.Status != 429 && v.Status != 402 }},
		{name: "parameter-named", class: recovery.UnsupportedParameter, when: func(v *view) bool {
			return !modelMissing(v) && !outputLimit(v) && v.Status != 429 && v.Status != 402 && v.Status != 401 && refusesKnown(v.text)
		}},
		{name: "parameter-illegal", class: recovery.UnsupportedParameter, any: []string{"参数非法", "参数不合法", "参数错误: ", "parameter is illegal",
			"illegal parameter"}, not: []string{"messages", "model", "prompt", "content", "消息", "模型"}},
		{name: "broken-json-parser", class: recovery.InvalidJSONBody, any: []string{"[json.exception.parse_error", "could not parse the json body",
			"request body is not valid json", "invalid json in request"}},
		{name: "broken-json", class: recovery.InvalidJSONBody, codes: []string{"invalid_json", "json_invalid", "json_parse*", "invalid_json_body",
			"malformed_json", "unable_to_parse_json", "body_parse*", "SerializationException", "MalformedInput", "invalid_body_json", "jsondecode"}},
		{name: "broken-json-text", class: recovery.InvalidJSONBody, any: []string{
			"not valid json", "could not parse the json body", "parse the json body", "invalid json", "malformed json", "json parse error",
			"json decode error", "parse json", "parsing json", "parse…json", "json…could not be parsed", "invalid character…looking for",
			"unexpected end of json",
			"expecting value: line", "expecting property name", "expecting ',' delimiter", "unterminated string", "invalid control character",
			"invalid unicode", "invalid utf-8", "not valid utf-8", "surrogate", "unexpected token…json", "unexpected token…in json",
			"invalid \\escape", "bad escape", "invalid escape", "failed to deserialize the json body", "request body is not valid",
			"body…not…valid json", "cannot unmarshal", "deserialize", "unexpected character", "eof while parsing", "trailing characters at line",
			"expected value at line",
			"json: cannot", "json syntax", "json格式", "[json.exception", "parse error at line", "error parsing the body",
			"request body could not be parsed", "unparseable", "cannot parse", "body is not json", "request body is empty",
			"missing request body", "syntax error in json", "json_invalid", "解析…json", "json…解析"},
			not: []string{"generated", "model output", "tool call", "tool_call", "function call", "arguments", "response_format", "image", "base64",
				"grammar", "unknown field", "missing field", "unknown variant", "invalid type", "word 'json'", "unknown name", "of type",
				"invalid value at", "chat template"},
			when: func(v *view) bool {
				return v.Status < 500 || v.Status == 500 && v.has([]string{"400", "invalidrequest"})
			}},
	}
}

// parameterPhrases are the wordings of "this field, value or role is not for me".
func parameterPhrases() []string {
	return []string{
		"unsupported parameter", "unknown parameter", "unrecognized request argument", "unrecognized parameter", "unrecognised parameter",
		"unsupported value", "unsupported param", "unrecognized key", "unrecognized field", "unexpected keyword argument",
		"extra inputs are not permitted", "extra fields not permitted", "unknown field", "cannot find field", "unknown name",
		"additional properties are not allowed", "additional properties not allowed", "extraneous key", "unexpected property", "unknown argument",
		"extra field",
		"not supported with this model", "not supported by this model", "not supported for this model", "not supported on this model",
		"not supported in this model", "unsupported for this model", "not support this parameter", "parameter is not supported",
		"parameters are not supported", "param is not supported",
		"parameter…is not supported", "parameter…not supported", "parameter…unsupported", "argument…not supported", "is unsupported",
		"are unsupported", "does not support…parameter", "does not support parameter", "do not support…parameter", "only the default",
		"cannot both be specified", "cannot be both specified", "cannot be specified together",
		"cannot be used together", "not compatible with", "incompatible with", "mutually exclusive", "is deprecated for this model", "only works in",
		"must be set to true", "must be set to false", "not allowed when", "may only be set to 1 when", "must be set to 1 when",
		"not supported when", "cannot be used with", "cannot use…with",
		"unexpected message role", "unexpected role 'developer'", "role 'developer'", "role: developer", "developer role", "developer is not one of",
		"role 'system' is not supported", "system role not supported", "system role is not supported", "system message is not supported",
		"does not support system", "developer instruction is not enabled", "system messages are not supported",
		"role must be", "invalid role 'developer'", "unknown variant 'developer'", "reasoning is mandatory", "reasoning cannot be disabled",
		"cannot be disabled", "does not support thinking", "thinking is not supported", "not support enable_thinking", "enable_thinking must be",
		"does not support reasoning", "does not support effort",
		"does not support tools", "does not support tool", "not support tool", "does not support function", "not support function",
		"function calling is not", "tools are not supported", "tools is not supported", "tool use is not supported",
		"tool calling is not supported", "tool calls are not supported", "support tool use", "tool use with function calling is unsupported",
		"tool choice requires", "tool_choice…not support", "tool_choice…unsupported", "not support…tool_choice", "tool_choice…requires",
		"tool_choice…must be", "parallel tool calls", "requires --enable-auto-tool-choice", "--jinja", "does not support response format",
		"response_format…not support", "response_format…unavailable", "response_format…unsupported", "response_format…not available",
		"not support…response_format", "not support…response format", "response format…not support", "json mode…not", "not support json",
		"json_schema…not support", "not support…json_schema", "structured output…not", "not support structured output", "does not support stream",
		"streaming is not supported", "streaming not supported", "does not support streaming",
		"does not support…'n'", "n > 1", "penalty is not enabled", "does not support top_k", "top_k is not", "unsupported option", "not supported: ",
		"unsupported field", "unsupported tool", "not implemented: ", "must be verified to stream", "use 'max_completion_tokens'",
		"max_completion_tokens' instead",
		"use max_completion_tokens", "unsupported 'max_tokens'", "不支持该参数", "不支持参数", "参数…不支持", "不支持…参数", "不支持工具", "不支持function", "不能同时设置",
		"不支持thinking", "beta flag", "anthropic-beta", "anthropic_beta", "unsupported feature",
		"does not support the…parameter", "does not support the…field", "doesn't support the…field", "doesn't support the…parameter",
		"does not support the '", "doesn't support…parameter", "does not support…temperature", "doesn't support temperature",
		"does not support temperature", "property…is not supported", "is not a valid parameter", "not supported, valid", "not supported, must be",
		"valid levels", "supported values are: low", "supported values are: 'low'", "is not supported by", "field…is not supported",
		"are not supported by",
	}
}

// refersToTool reports that the structure points at the definition of a tool.
func refersToTool(v *view) bool {
	path := v.Param
	if len(v.params) > 0 {
		path = v.params[0]
	}
	return strings.HasPrefix(path, "tools[") || strings.HasPrefix(path, "tools.") && strings.ContainsAny(path, "0123456789")
}

// refusesKnown reports that a request field with a known name and a refusal
// stand close together.
func refusesKnown(text string) bool {
	name := firstKnown(text, knownNames[:])
	if name == "" || name == "max_tokens" || name == "max_completion_tokens" || name == "max_output_tokens" || name == "cache_control" || name == "thinking" {
		return false
	}
	i := strings.Index(text, name)
	near := text[max(0, i-60):min(len(text), i+len(name)+60)]
	for _, refusal := range [...]string{"not support", "n't support", "unsupported", "not available", "unavailable", "not allowed", "not permitted",
		"not enabled", "not accepted", "unrecognized", "unexpected", "not recognized", "deprecated", "must be removed", "remove ", "不支持"} {
		if strings.Contains(near, refusal) {
			return true
		}
	}
	return false
}

// modelMissing reports that the model is what is refused, whatever the words.
func modelMissing(v *view) bool {
	return v.has([]string{"modelnotfound", "modeldecommissioned", "modelnotsupported", "unknownmodel", "deploymentnotfound", "modelnotopen",
		"modelnotavailable"})
}

// quotaStatus reports a status that is about money whatever the words.
func quotaStatus(v *view) bool { return v.Status == 402 }

func not(f func(*view) bool) func(*view) bool { return func(v *view) bool { return !f(v) } }

// outputLimit reports that the text is about how large the requested output
// may be, not about whether the parameter exists.
func outputLimit(v *view) bool {
	return strings.Contains(v.text, "too large") || strings.Contains(v.text, "less than or equal") || strings.Contains(v.text, "at most")
}
